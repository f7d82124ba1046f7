/* Reads messages as the decoders do that `decoding.py` writes, only quicker.
 *
 * S1  What it returns is what the decoder in Python would return. Whatever is not plain and whole, it leaves to that
 *     decoder, which knows what to make of it or what to complain about: tagged fields, a null where none may be, a
 *     text that is no UTF-8, bytes that end too soon. So it has no error of its own but a lack of memory.
 * S2  No byte is read at or behind `end`, nor behind the buffer. A count is held against the bytes left before a list
 *     is made for it, and a long list grows as its elements are read.
 * S3  A plan is made once, from what `swift.py` says of a message at one version, and never changes.
 * S4  A message with more elements than it may have (`elements.py`) is left to that decoder before they are made.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
#include <string.h>

#define LIST_AT_ONCE 1024
#define STRING_BYTES_MAX 32767
#define DEPTH_MAX 16

typedef enum {
    DEFAULT, FRESH_LIST, FRESH_STRUCT, /* not in this version: what stands there instead */
    INT8, INT16, INT32, INT64, UINT16, UINT32, FLOAT64, BOOL, UUID,
    STRING, BYTES, RECORDS,
    STRUCT
} Kind;

struct plan;

typedef struct {
    uint8_t kind;
    uint8_t array;
    uint8_t compact;
    uint8_t nullable;
    Py_ssize_t slot;   /* where in the object the value goes */
    PyObject *value;   /* a default, or the class of a fresh struct */
    struct plan *plan; /* of a struct */
} Field;

typedef struct plan {
    PyTypeObject *cls;
    Py_ssize_t least;   /* the fewest bytes that one takes */
    Py_ssize_t unknown; /* the slot of unknown_tags */
    uint8_t flexible;
    Py_ssize_t count;
    Field fields[];
} Plan;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Plan *plan;
    PyObject *general;
    Py_ssize_t elements_max;
} Reader;

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    PyObject *buffer; /* what `at` points into */
    PyObject *view;   /* a memoryview of it, once there are records */
    const uint8_t *start;
    Py_ssize_t left;  /* elements that arrays may still have */
} Input;

/* Bytes */

static inline uint64_t big(const uint8_t *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static inline int has(const Input *in, Py_ssize_t size)
{
    return in->end - in->at >= size;
}

/* An unsigned varint below 2**31; -1 if there is none. */
static inline int64_t varint(Input *in)
{
    uint64_t value = 0;
    for (int shift = 0; shift <= 28; shift += 7) {
        if (in->at == in->end)
            return -1;
        uint8_t byte = *in->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value > 0x7FFFFFFF ? -1 : (int64_t)value;
    }
    return -1;
}

/* A length or count: -1 for null, -2 if there is none. `wide` is how many bytes it has if it is not compact. */
static inline int64_t length(Input *in, int compact, int wide)
{
    if (compact) {
        int64_t value = varint(in);
        return value < 0 ? -2 : value - 1;
    }
    if (!has(in, wide))
        return -2;
    int64_t value = wide == 2 ? (int16_t)big(in->at, 2) : (int32_t)big(in->at, 4);
    in->at += wide;
    return value < 0 ? -1 : value;
}

/* Values: a new reference, or NULL without an error where the other decoder has to have a look. */

static inline int width(uint8_t kind)
{
    switch (kind) {
    case INT8: case BOOL: return 1;
    case INT16: case UINT16: return 2;
    case INT32: case UINT32: return 4;
    case INT64: case FLOAT64: return 8;
    default: return 16;
    }
}

static inline PyObject *number(uint8_t kind, const uint8_t *at)
{
    switch (kind) {
    case INT8: return PyLong_FromLong((int8_t)at[0]);
    case INT16: return PyLong_FromLong((int16_t)big(at, 2));
    case INT32: return PyLong_FromLong((int32_t)big(at, 4));
    case INT64: return PyLong_FromLongLong((int64_t)big(at, 8));
    case UINT16: return PyLong_FromLong((long)big(at, 2));
    case UINT32: return PyLong_FromUnsignedLong((unsigned long)big(at, 4));
    case BOOL: return PyBool_FromLong(at[0]);
    case FLOAT64: {
        uint64_t bits = big(at, 8);
        double value;
        memcpy(&value, &bits, 8);
        return PyFloat_FromDouble(value);
    }
    default: return PyBytes_FromStringAndSize((const char *)at, 16);
    }
}

/* A view of its own of some of the buffer, which it keeps alive. */
static PyObject *records(Input *in, Py_ssize_t size)
{
    if (in->view == NULL && (in->view = PyMemoryView_FromObject(in->buffer)) == NULL)
        return NULL;
    PyObject *view = PyMemoryView_FromObject(in->view);
    if (view == NULL)
        return NULL;
    Py_buffer *extent = PyMemoryView_GET_BUFFER(view);
    extent->buf = (char *)extent->buf + (in->at - in->start);
    extent->len = size;
    extent->shape[0] = size;
    return view;
}

static PyObject *text(Input *in, uint8_t kind, int compact, int nullable)
{
    int64_t size = length(in, compact, kind == STRING ? 2 : 4);
    if (size == -1 && nullable)
        return Py_NewRef(Py_None);
    if (size < 0 || !has(in, size) || (kind == STRING && size > STRING_BYTES_MAX))
        return NULL;
    PyObject *value;
    if (kind == STRING)
        value = PyUnicode_DecodeUTF8((const char *)in->at, size, "strict");
    else if (kind == BYTES)
        value = PyBytes_FromStringAndSize((const char *)in->at, size);
    else
        value = records(in, size);
    in->at += size;
    return value;
}

static PyObject *object(Input *in, const Plan *plan);

static inline PyObject *one(Input *in, const Field *field)
{
    uint8_t kind = field->kind;
    if (kind < STRING) {
        int size = width(kind);
        if (!has(in, size))
            return NULL;
        PyObject *value = number(kind, in->at);
        in->at += size;
        return value;
    }
    if (kind < STRUCT)
        return text(in, kind, field->compact, field->nullable);
    if (field->nullable) {
        if (!has(in, 1))
            return NULL;
        if ((int8_t)*in->at++ < 0)
            return Py_NewRef(Py_None);
    }
    return object(in, field->plan);
}

static PyObject *many(Input *in, const Field *field)
{
    uint8_t kind = field->kind;
    int64_t count = length(in, field->compact, 4);
    if (count == -1 && field->nullable)
        return Py_NewRef(Py_None);
    Py_ssize_t least = kind < STRING ? width(kind) : kind == STRUCT ? field->plan->least : field->compact ? 1 : 2;
    if (count < 0 || count > (in->end - in->at) / least)
        return NULL;
    in->left -= count;
    if (in->left < 0)
        return NULL;
    PyObject *list = PyList_New(count <= LIST_AT_ONCE ? (Py_ssize_t)count : 0);
    if (list == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item;
        if (kind < STRING) {
            item = number(kind, in->at);
            in->at += width(kind);
        } else if (kind < STRUCT)
            item = text(in, kind, field->compact, 0);
        else
            item = object(in, field->plan);
        if (item == NULL)
            goto failed;
        if (count <= LIST_AT_ONCE)
            PyList_SET_ITEM(list, i, item);
        else {
            int error = PyList_Append(list, item);
            Py_DECREF(item);
            if (error)
                goto failed;
        }
    }
    return list;
failed:
    Py_DECREF(list);
    return NULL;
}

static PyObject *object(Input *in, const Plan *plan)
{
    PyObject *made = plan->cls->tp_alloc(plan->cls, 0);
    if (made == NULL)
        return NULL;
    for (const Field *field = plan->fields, *stop = field + plan->count; field < stop; field++) {
        PyObject *value;
        if (field->kind == DEFAULT)
            value = Py_NewRef(field->value);
        else if (field->kind == FRESH_LIST)
            value = PyList_New(0);
        else if (field->kind == FRESH_STRUCT)
            value = PyObject_CallNoArgs(field->value);
        else
            value = field->array ? many(in, field) : one(in, field);
        if (value == NULL)
            goto failed;
        *(PyObject **)((char *)made + field->slot) = value;
    }
    if (plan->flexible) {
        if (!has(in, 1) || *in->at++ != 0)
            goto failed;
    }
    *(PyObject **)((char *)made + plan->unknown) = Py_NewRef(Py_None);
    return made;
failed:
    Py_DECREF(made);
    return NULL;
}

/* Plans */

static void forget(Plan *plan)
{
    if (plan == NULL)
        return;
    for (Py_ssize_t i = 0; i < plan->count; i++) {
        Py_XDECREF(plan->fields[i].value);
        forget(plan->fields[i].plan);
    }
    Py_XDECREF(plan->cls);
    PyMem_Free(plan);
}

/* Where a slot of a class is; -1 with an error if it is none. */
static Py_ssize_t slot(PyTypeObject *cls, PyObject *name)
{
    PyObject *found = _PyType_Lookup(cls, name);
    if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type)
        || ((PyMemberDescrObject *)found)->d_member->type != T_OBJECT_EX) {
        PyErr_Format(PyExc_TypeError, "%s has no slot %U", cls->tp_name, name);
        return -1;
    }
    return ((PyMemberDescrObject *)found)->d_member->offset;
}

/* (class, flexible, least, ((name, kind, array, compact, nullable, default or plan or None), ...)) */
static Plan *learn(PyObject *told, int depth)
{
    PyTypeObject *cls;
    PyObject *fields;
    int flexible;
    Py_ssize_t least;
    if (depth > DEPTH_MAX) {
        PyErr_SetString(PyExc_ValueError, "structs within structs without end");
        return NULL;
    }
    if (!PyArg_ParseTuple(told, "O!pnO!", &PyType_Type, &cls, &flexible, &least, &PyTuple_Type, &fields))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(fields);
    Plan *plan = PyMem_Calloc(1, sizeof(Plan) + count * sizeof(Field));
    if (plan == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    plan->cls = (PyTypeObject *)Py_NewRef(cls);
    plan->flexible = flexible;
    plan->least = least > 0 ? least : 1;
    PyObject *name = PyUnicode_FromString("unknown_tags");
    plan->unknown = name == NULL ? -1 : slot(cls, name);
    Py_XDECREF(name);
    if (plan->unknown < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < count; i++) {
        Field *field = &plan->fields[i];
        int kind, array, compact, nullable;
        PyObject *more;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, i), "UipppO", &name, &kind, &array, &compact, &nullable, &more))
            goto failed;
        plan->count = i + 1;
        if (kind < DEFAULT || kind > STRUCT) {
            PyErr_Format(PyExc_ValueError, "there is no kind %d", kind);
            goto failed;
        }
        *field = (Field){kind, array, compact, nullable, slot(cls, name), NULL, NULL};
        if (field->slot < 0)
            goto failed;
        if (kind == STRUCT) {
            if ((field->plan = learn(more, depth + 1)) == NULL)
                goto failed;
        } else
            field->value = Py_NewRef(more);
    }
    return plan;
failed:
    forget(plan);
    return NULL;
}

/* Readers */

static PyObject *decode(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Reader *reader = (Reader *)self;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    if (given != 3 || names != NULL)
        return PyErr_Format(PyExc_TypeError, "a decoder takes a buffer, a position and an end");
    Py_ssize_t pos = PyLong_AsSsize_t(args[1]), end = PyLong_AsSsize_t(args[2]);
    if ((pos == -1 || end == -1) && PyErr_Occurred())
        return NULL;
    Py_buffer held;
    if (PyObject_GetBuffer(args[0], &held, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *made = NULL;
    Input in = {NULL, NULL, args[0], NULL, held.buf, reader->elements_max};
    if (0 <= pos && pos <= end && end <= held.len) {
        in.at = in.start + pos;
        in.end = in.start + end;
        made = object(&in, reader->plan);
    }
    Py_XDECREF(in.view);
    PyBuffer_Release(&held);
    if (made == NULL) {
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
                return NULL;
            PyErr_Clear();
        }
        return PyObject_Vectorcall(reader->general, args, 3, NULL);
    }
    PyObject *result = PyTuple_New(2);
    PyObject *after = result == NULL ? NULL : PyLong_FromSsize_t(in.at - in.start);
    if (after == NULL) {
        Py_XDECREF(result);
        Py_DECREF(made);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, made);
    PyTuple_SET_ITEM(result, 1, after);
    return result;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *told, *general;
    Py_ssize_t elements_max;
    if (keywords != NULL && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "a reader takes a plan, a decoder and a bound of elements");
    if (!PyArg_ParseTuple(args, "O!On", &PyTuple_Type, &told, &general, &elements_max))
        return NULL;
    Plan *plan = learn(told, 0);
    if (plan == NULL)
        return NULL;
    Reader *self = (Reader *)type->tp_alloc(type, 0);
    if (self == NULL) {
        forget(plan);
        return NULL;
    }
    self->call = decode;
    self->plan = plan;
    self->general = Py_NewRef(general);
    self->elements_max = elements_max;
    return (PyObject *)self;
}

static void destroy(PyObject *self)
{
    Reader *reader = (Reader *)self;
    forget(reader->plan);
    Py_XDECREF(reader->general);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef members[] = {
    {"general", T_OBJECT_EX, offsetof(Reader, general), READONLY, "The decoder that reads what this one leaves."},
    {NULL},
};

static PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ottla.wire._swift.Reader",
    .tp_doc = "Reader(plan, general, elements_max): a decoder, called as (buffer, position, end) -> (message, position after it).",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Reader, call),
    .tp_call = PyVectorcall_Call,
    .tp_members = members,
    .tp_new = make,
    .tp_dealloc = destroy,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ottla.wire._swift", "Reads messages, quicker than Python could.", -1, NULL,
};

PyMODINIT_FUNC PyInit__swift(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
    if (PyModule_AddType(made, &ReaderType) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
