/* The slots of our own classes, read and written where they stand, for the compiled parts of every room.
 *
 * A part names the slots it needs in a table, and learns from the classes where they are. It looks into an object only
 * after it has seen that the class is the very one it learned, so that a subclass with ways of its own is left alone.
 */
#ifndef OTTLA_SLOTS_H
#define OTTLA_SLOTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const char *cls;
    const char *name;
    Py_ssize_t *at;
} Slot;

typedef struct {
    const char *name;
    PyTypeObject **cls;
} Class;

#define AT(object, slot) (*(PyObject **)((char *)(object) + (slot)))

/* Learn from a dict of classes where every slot of the table is. */
static int learn_slots(PyObject *classes, const Class *wanted, const Slot *slots)
{
    for (; wanted->name != NULL; wanted++) {
        PyObject *cls = PyDict_GetItemString(classes, wanted->name);
        if (cls == NULL || !PyType_Check(cls)) {
            PyErr_Format(PyExc_TypeError, "there is no class %s", wanted->name);
            return -1;
        }
        Py_XSETREF(*wanted->cls, (PyTypeObject *)Py_NewRef(cls));
    }
    for (; slots->cls != NULL; slots++) {
        PyObject *cls = PyDict_GetItemString(classes, slots->cls);
        PyObject *found = cls == NULL ? NULL : PyObject_GetAttrString(cls, slots->name);
        if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type)) {
            Py_XDECREF(found);
            PyErr_Format(PyExc_TypeError, "%s has no slot %s", slots->cls, slots->name);
            return -1;
        }
        *slots->at = ((PyMemberDescrObject *)found)->d_member->offset;
        Py_DECREF(found);
    }
    return 0;
}

/* Learn a number from the same dict, so that it stands in one place, in Python. */
static inline int learn_number(PyObject *known, const char *name, int64_t *number)
{
    PyObject *value = PyDict_GetItemString(known, name);
    int overflow = 0;
    if (value != NULL && PyLong_CheckExact(value))
        *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (value == NULL || !PyLong_CheckExact(value) || overflow) {
        PyErr_Format(PyExc_TypeError, "there is no number %s", name);
        return -1;
    }
    return 0;
}

/* An int that fits; 0 where there is none. */
static inline int whole(PyObject *value, int64_t *number)
{
    if (value == NULL || !PyLong_CheckExact(value))
        return 0;
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* Put a new reference into a slot. */
static inline int put(PyObject *object, Py_ssize_t slot, PyObject *value)
{
    if (value == NULL)
        return -1;
    PyObject *old = AT(object, slot);
    AT(object, slot) = value;
    Py_XDECREF(old);
    return 0;
}

static inline int put_whole(PyObject *object, Py_ssize_t slot, int64_t value)
{
    return put(object, slot, PyLong_FromLongLong(value));
}

/* Raise a counter. */
static inline int add(PyObject *object, Py_ssize_t slot, int64_t more)
{
    int64_t number;
    if (!whole(AT(object, slot), &number)) {
        PyErr_SetString(PyExc_OverflowError, "a counter has no room left");
        return -1;
    }
    return put_whole(object, slot, number + more);
}

static inline uint64_t read_big(const uint8_t *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static inline int16_t read_16(const uint8_t *at) { return (int16_t)read_big(at, 2); }
static inline int32_t read_32(const uint8_t *at) { return (int32_t)read_big(at, 4); }
static inline int64_t read_64(const uint8_t *at) { return (int64_t)read_big(at, 8); }

static inline uint8_t *write_big(uint8_t *at, uint64_t value, int size)
{
    for (int i = size - 1; i >= 0; i--, value >>= 8)
        at[i] = (uint8_t)value;
    return at + size;
}

#endif
