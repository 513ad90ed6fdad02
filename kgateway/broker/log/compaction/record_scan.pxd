# The C types of record_scan.py when it is compiled. Python does not read this file.
cimport cython


@cython.locals(
    size=Py_ssize_t,
    high=Py_ssize_t,
    at=Py_ssize_t,
    end=Py_ssize_t,
    delta=Py_ssize_t,
    double=Py_ssize_t,
    key_size=Py_ssize_t,
    keys=list,
)
cpdef keys_of(bytes data, Py_ssize_t pos, Py_ssize_t count)


@cython.locals(
    number=Py_ssize_t,
    start=Py_ssize_t,
    at=Py_ssize_t,
    end=Py_ssize_t,
    size=Py_ssize_t,
    high=Py_ssize_t,
    place=Py_ssize_t,
    entries=list,
)
cpdef entries_at(bytes data, Py_ssize_t pos, places)
