"""The columns of a table of Arrow on another place, such as a GPU."""
import pyarrow
import umem

table = pyarrow.table({"mass": [1.5, 2.5, 4.0], "charge": [1, None, -1]})
place = umem.open("pool+host:")  # with a GPU: "pool+cuda:0"
columns = {name: umem.from_arrow(table[name].fill_null(0), place) for name in table.column_names}
print(columns["charge"].tolist(), columns["mass"].sum())

charge, there = umem.from_arrow(table["charge"], validity=True)  # the memory of the table
print(there.tolist())
print(pyarrow.array(columns["mass"]).type, pyarrow.record_batch(columns).num_rows)
