/* umem/config.h - the version, and how public symbols are declared. */
#ifndef UMEM_CONFIG_H
#define UMEM_CONFIG_H

/* The version of these headers; umem_version() returns that of the library. */
#define UMEM_VERSION_MAJOR 0
#define UMEM_VERSION_MINOR 2
#define UMEM_VERSION_PATCH 0
#define UMEM_VERSION "0.2.0"

/* Who sees the functions of the public C API: umem/with/python.cpp hides them. */
#ifndef UMEM_VISIBILITY
#define UMEM_VISIBILITY "default"
#endif

/* Declares a function of the public C API. Contexts outside of the library may use it, too. */
#ifdef __cplusplus
#define UMEM_EXTERN extern "C" __attribute__((visibility(UMEM_VISIBILITY)))
#else
#define UMEM_EXTERN extern __attribute__((visibility(UMEM_VISIBILITY)))
#endif

/* Lets the compiler check the arguments of a function that formats like printf. */
#define UMEM_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Returns UMEM_VERSION of the library in use, for example "0.2.0". Static storage. */
UMEM_EXTERN char const *umem_version(void);

#endif
