/* Records of a batch, found and made into tuples, as `record.py` does it, only quicker.
 *
 * R1  `sound` says whether records fill their batch as they should. It finds the same batches sound that
 *     `decode_records` reads; what is wrong with the others is for that one to say.
 * R2  No byte is read outside of the batch, whatever the lengths in it say, whether somebody asked `sound` or not.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>

#include "_walk.h"

#define VARINT_SHIFT_MAX 28
#define VARLONG_SHIFT_MAX 63

typedef struct {
    const uint8_t *at;
    Py_ssize_t size; /* -1 for null */
} Extent;

typedef struct {
    int64_t time;
    int64_t offset;
    Extent key;
    Extent value;
    const uint8_t *headers; /* behind their count */
    int64_t header_count;
} Found;

/* The zigzag varint at *at, still zigzag; 0 if there is none before `end`. */
static inline int number(const uint8_t **at, const uint8_t *end, int shift_max, uint64_t *value)
{
    uint64_t found = 0;
    const uint8_t *pos = *at;
    for (int shift = 0; shift <= shift_max; shift += 7) {
        if (pos >= end)
            return 0;
        uint8_t byte = *pos++;
        found |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *at = pos;
            *value = found;
            return 1;
        }
    }
    return 0;
}

static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* A length and so many bytes. */
static inline int extent(const uint8_t **at, const uint8_t *end, Extent *found)
{
    uint64_t size;
    if (!number(at, end, VARINT_SHIFT_MAX, &size))
        return 0;
    if (size & 1) {
        *found = (Extent){*at, -1};
        return 1;
    }
    size >>= 1;
    if (size > (uint64_t)(end - *at))
        return 0;
    *found = (Extent){*at, (Py_ssize_t)size};
    *at += size;
    return 1;
}

static int pass_headers(const uint8_t **at, const uint8_t *end, int64_t count)
{
    Extent found;
    for (int64_t i = 0; i < count; i++)
        if (!extent(at, end, &found) || found.size < 0 || !extent(at, end, &found))
            return 0;
    return 1;
}

/* The record at *at; 0 if there is no sound one. */
static inline int record(const uint8_t **at, const uint8_t *end, Found *found)
{
    uint64_t size, value;
    const uint8_t *pos = *at;
    if (!number(&pos, end, VARINT_SHIFT_MAX, &size) || size & 1 || (size >> 1) > (uint64_t)(end - pos))
        return 0;
    const uint8_t *stop = pos + (size >> 1);
    if (pos == stop)
        return 0;
    pos++; /* the attributes, which mean nothing yet */
    if (!number(&pos, stop, VARLONG_SHIFT_MAX, &value))
        return 0;
    found->time = unzigzag(value);
    if (!number(&pos, stop, VARINT_SHIFT_MAX, &value))
        return 0;
    found->offset = unzigzag(value);
    if (!extent(&pos, stop, &found->key) || !extent(&pos, stop, &found->value))
        return 0;
    if (!number(&pos, stop, VARINT_SHIFT_MAX, &value))
        return 0;
    found->header_count = unzigzag(value);
    found->headers = pos;
    if (found->header_count < 0 || found->header_count > stop - pos)
        return 0;
    if (!pass_headers(&pos, stop, found->header_count) || pos != stop)
        return 0;
    *at = stop;
    return 1;
}

static PyObject *sound(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 3 || !PyBytes_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "sound() takes bytes, a count and an offset");
    Py_ssize_t count = PyLong_AsSsize_t(args[1]);
    long long below = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(args[0]), *end = at + PyBytes_GET_SIZE(args[0]);
    Py_ssize_t before = 0;
    Found found;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!record(&at, end, &found))
            return PyLong_FromLong(-1);
        if (found.offset < below && before == i)
            before++;
    }
    return PyLong_FromSsize_t(count < 0 || at != end ? -1 : before);
}

static PyObject *made(Extent found)
{
    if (found.size < 0)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)found.at, found.size);
}

/* A base and what lies behind it. */
static PyObject *sum(long long base, int64_t delta)
{
    long long total;
    if (!__builtin_add_overflow(base, (long long)delta, &total))
        return PyLong_FromLongLong(total);
    PyObject *left = PyLong_FromLongLong(base), *right = PyLong_FromLongLong(delta);
    PyObject *both = left == NULL || right == NULL ? NULL : PyNumber_Add(left, right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return both;
}

static PyObject *headers(const Found *found, const uint8_t *end)
{
    PyObject *all = PyTuple_New((Py_ssize_t)found->header_count);
    if (all == NULL)
        return NULL;
    const uint8_t *at = found->headers;
    for (Py_ssize_t i = 0; i < found->header_count; i++) {
        Extent name, value;
        if (!extent(&at, end, &name) || !extent(&at, end, &value))
            goto failed; /* it was found sound */
        PyObject *pair = PyTuple_New(2);
        if (pair == NULL)
            goto failed;
        PyTuple_SET_ITEM(all, i, pair);
        PyObject *text = PyUnicode_DecodeUTF8((const char *)name.at, name.size, "surrogateescape");
        PyObject *bytes = text == NULL ? NULL : made(value);
        if (bytes == NULL) {
            Py_XDECREF(text);
            goto failed;
        }
        PyTuple_SET_ITEM(pair, 0, text);
        PyTuple_SET_ITEM(pair, 1, bytes);
    }
    return all;
failed:
    Py_DECREF(all);
    return NULL;
}

/* make(into, cls, before, after, body, skip, take, base offset, base timestamp, append time or None) */
static PyObject *make(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 10 || !PyList_Check(args[0]) || !PyType_Check(args[1])
        || !PyType_IsSubtype((PyTypeObject *)args[1], &PyTuple_Type) || !PyTuple_Check(args[2])
        || !PyTuple_Check(args[3]) || !PyBytes_Check(args[4]))
        return PyErr_Format(PyExc_TypeError, "make() takes a list, a kind of tuple, two tuples, bytes and numbers");
    PyObject *into = args[0], *before = args[2], *after = args[3];
    PyTypeObject *cls = (PyTypeObject *)args[1];
    Py_ssize_t skip = PyLong_AsSsize_t(args[5]), take = PyLong_AsSsize_t(args[6]);
    long long base_offset = PyLong_AsLongLong(args[7]), base_time = PyLong_AsLongLong(args[8]);
    PyObject *append_time = args[9] == Py_None ? NULL : args[9];
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t first = PyTuple_GET_SIZE(before), last = PyTuple_GET_SIZE(after), width = first + 5 + last;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(args[4]), *end = at + PyBytes_GET_SIZE(args[4]);
    Found found;
    for (; skip > 0; skip--)
        if (!record(&at, end, &found))
            goto unsound;
    for (; take > 0; take--) {
        if (!record(&at, end, &found))
            goto unsound;
        PyObject *each = cls->tp_alloc(cls, width);
        if (each == NULL)
            return NULL;
        for (Py_ssize_t i = 0; i < first; i++)
            PyTuple_SET_ITEM(each, i, Py_NewRef(PyTuple_GET_ITEM(before, i)));
        for (Py_ssize_t i = 0; i < last; i++)
            PyTuple_SET_ITEM(each, first + 5 + i, Py_NewRef(PyTuple_GET_ITEM(after, i)));
        PyObject *values[5];
        values[0] = sum(base_offset, found.offset);
        values[1] = append_time != NULL ? Py_NewRef(append_time) : sum(base_time, found.time);
        values[2] = made(found.key);
        values[3] = made(found.value);
        values[4] = headers(&found, end);
        int failed = 0;
        for (int i = 0; i < 5; i++) {
            PyTuple_SET_ITEM(each, first + i, values[i]);
            failed |= values[i] == NULL;
        }
        failed = failed || PyList_Append(into, each) < 0;
        Py_DECREF(each);
        if (failed)
            return NULL;
    }
    Py_RETURN_NONE;
unsound:
    return PyErr_Format(PyExc_ValueError, "the batch has no such records");
}

/* columns(numbers, flags, at, data, start, size, count, base offset, base timestamp, append time or None)
 *
 * Fills the columns of `count` records from number `at` on: eight rows of 64-bit numbers (offset, timestamp, start and end
 * of key and value, where the headers begin, where the record ends), three of flags (no key, no value, headers).
 */
static PyObject *columns(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 10 || !PyBytes_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "columns() takes two buffers, a number, bytes and numbers");
    Py_ssize_t at = PyLong_AsSsize_t(args[2]), start = PyLong_AsSsize_t(args[4]), size = PyLong_AsSsize_t(args[5]);
    Py_ssize_t count = PyLong_AsSsize_t(args[6]);
    long long base_offset = PyLong_AsLongLong(args[7]), base_time = PyLong_AsLongLong(args[8]);
    int fixed = args[9] != Py_None;
    long long append_time = fixed ? PyLong_AsLongLong(args[9]) : 0;
    if (PyErr_Occurred())
        return NULL;
    Py_buffer numbers, flags;
    if (PyObject_GetBuffer(args[0], &numbers, PyBUF_SIMPLE | PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &flags, PyBUF_SIMPLE | PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&numbers);
        return NULL;
    }
    Py_ssize_t width = flags.len / 3, whole = PyBytes_GET_SIZE(args[3]);
    int sound = -1;
    if (numbers.len == width * 64 && at >= 0 && count >= 0 && count <= width - at && start >= 0 && size >= 0
        && start <= whole && size <= whole - start) {
        int64_t *number_at = (int64_t *)numbers.buf + at;
        uint8_t *flag_at = (uint8_t *)flags.buf + at;
        const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(args[3]);
        const uint8_t *pos = data + start, *end = pos + size;
        Found found;
        sound = 1;
        for (Py_ssize_t i = 0; i < count; i++, number_at++, flag_at++) {
            if (!record(&pos, end, &found)) {
                sound = 0;
                break;
            }
            int64_t key = found.key.at - data, value = found.value.at - data;
            int64_t value_end = value + (found.value.size < 0 ? 0 : found.value.size);
            number_at[0] = (int64_t)((uint64_t)base_offset + (uint64_t)found.offset);
            number_at[width] = fixed ? append_time : (int64_t)((uint64_t)base_time + (uint64_t)found.time);
            number_at[width * 2] = key;
            number_at[width * 3] = key + (found.key.size < 0 ? 0 : found.key.size);
            number_at[width * 4] = value;
            number_at[width * 5] = value_end;
            number_at[width * 6] = value_end;
            number_at[width * 7] = pos - data;
            flag_at[0] = found.key.size < 0;
            flag_at[width] = found.value.size < 0;
            flag_at[width * 2] = data[value_end] != 0;
        }
        if (sound && pos != end)
            sound = 0;
    }
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&flags);
    if (sound < 0)
        return PyErr_Format(PyExc_ValueError, "the buffers or the places do not fit");
    return PyBool_FromLong(sound);
}

/* `Walk`: a pass over records as an object, the twin of `record_walk.PlainWalk`. */

#define UNHELD_BYTES (16 << 10) /* a longer piece lets other threads run */

typedef struct {
    PyObject_HEAD
    Walk walk;
} WalkObject;

static PyObject *walk_new(PyTypeObject *cls, PyObject *args, PyObject *named)
{
    PyObject *append_time;
    long long count, base_time, earliest, latest, low, high, delta, fixed = 0;
    int is_dense, is_keyed;
    if (!PyArg_ParseTuple(args, "LLOppLLLLL", &count, &base_time, &append_time, &is_dense, &is_keyed, &earliest, &latest,
                          &low, &high, &delta))
        return NULL;
    if (append_time != Py_None && (fixed = PyLong_AsLongLong(append_time)) == -1 && PyErr_Occurred())
        return NULL;
    WalkObject *self = (WalkObject *)cls->tp_alloc(cls, 0);
    if (self == NULL)
        return NULL;
    Walk *walk = &self->walk;
    walk->count = count;
    walk->base_time = base_time;
    walk->is_append_time = append_time != Py_None;
    walk->append_time = fixed;
    walk->is_dense = is_dense;
    walk->is_keyed = is_keyed;
    walk->earliest = earliest;
    walk->latest = latest;
    walk->find_low = low;
    walk->find_high = high;
    walk->find_delta = delta;
    walk_begin(walk);
    return (PyObject *)self;
}

static PyObject *walk_feed_object(PyObject *self, PyObject *piece)
{
    Py_buffer held;
    int more;
    if (PyObject_GetBuffer(piece, &held, PyBUF_SIMPLE) < 0)
        return NULL;
    Walk *walk = &((WalkObject *)self)->walk;
    if (held.len < UNHELD_BYTES)
        more = walk_feed(walk, held.buf, held.len);
    else {
        Py_BEGIN_ALLOW_THREADS
        more = walk_feed(walk, held.buf, held.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&held);
    return PyBool_FromLong(more);
}

static PyObject *walk_end_object(PyObject *self, PyObject *unused)
{
    return PyLong_FromLong(walk_end(&((WalkObject *)self)->walk));
}

static PyObject *walk_bad(PyObject *self, void *unused)
{
    Walk *walk = &((WalkObject *)self)->walk;
    PyObject *all = PyTuple_New(walk->bad_count);
    for (int i = 0; all != NULL && i < walk->bad_count; i++) {
        PyObject *number = PyLong_FromLongLong(walk->bad[i]);
        if (number == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, i, number);
    }
    return all;
}

static PyObject *walk_found(PyObject *self, void *unused) { return PyBool_FromLong(((WalkObject *)self)->walk.found); }
static PyObject *walk_late(PyObject *self, void *unused) { return PyBool_FromLong(((WalkObject *)self)->walk.is_late); }

static PyMemberDef walk_members[] = {
    {"fault", T_INT, offsetof(WalkObject, walk.fault), READONLY},
    {"index", T_LONGLONG, offsetof(WalkObject, walk.index), READONLY},
    {"max_time", T_LONGLONG, offsetof(WalkObject, walk.max_time), READONLY},
    {"found_time", T_LONGLONG, offsetof(WalkObject, walk.found_time), READONLY},
    {"found_delta", T_LONGLONG, offsetof(WalkObject, walk.found_delta), READONLY},
    {NULL},
};

static PyGetSetDef walk_getters[] = {{"bad", walk_bad}, {"found", walk_found}, {"is_late", walk_late}, {NULL}};

static PyMethodDef walk_methods[] = {
    {"feed", walk_feed_object, METH_O, "feed(piece): go on with the next piece; False once there is no need for more."},
    {"end", walk_end_object, METH_NOARGS, "end(): say that no more comes, and return the fault."},
    {NULL},
};

static PyTypeObject WalkType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ottla.wire._records.Walk",
    .tp_basicsize = sizeof(WalkObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A pass over the records of a batch, a piece at a time.",
    .tp_new = walk_new,
    .tp_methods = walk_methods,
    .tp_members = walk_members,
    .tp_getset = walk_getters,
};

static PyMethodDef functions[] = {
    {"sound", (PyCFunction)(void (*)(void))sound, METH_FASTCALL,
     "sound(body, count, below): how many of `count` records begin before a relative offset; -1 if not all are sound."},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL,
     "make(into, cls, before, after, body, skip, take, base_offset, base_timestamp, append_time): append tuples."},
    {"columns", (PyCFunction)(void (*)(void))columns, METH_FASTCALL,
     "columns(numbers, flags, at, data, start, size, count, base_offset, base_timestamp, append_time): fill columns."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ottla.wire._records", "Reads records, quicker than Python could.", -1, functions,
};

PyMODINIT_FUNC PyInit__records(void)
{
    PyObject *made = PyType_Ready(&WalkType) < 0 ? NULL : PyModule_Create(&module);
    if (made != NULL && PyModule_AddObjectRef(made, "Walk", (PyObject *)&WalkType) < 0)
        Py_CLEAR(made);
    return made;
}
