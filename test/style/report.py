"""How the checks tell their results: one line `ok - NAME` or `not ok - NAME` each, which test/run
counts, and the problems below it."""


class Report:
    def __init__(self):
        self.failed = 0

    def check(self, name, problems):
        """Tells one check, which has failed when there are problems (strings)."""
        print(f"{'not ok' if problems else 'ok'} - {name}")
        for problem in problems:
            print(f"    {problem}")
        self.failed += bool(problems)

    def exit_code(self):
        return 1 if self.failed else 0
