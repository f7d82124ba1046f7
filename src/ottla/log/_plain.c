/* Appends a plain batch as `Log.append` does, only quicker.
 *
 * A1  What it does is what `Log.append` would do. Whatever is not plain it leaves to that, untouched: a batch that is
 *     refused or repeated, a log that has to roll, a file that is not open, a transaction, a producer not seen before,
 *     a batch that is compressed or so long that a thread has to look through it.
 * A2  All is looked at before anything is changed, but for the write itself; a write that fails or falls short is
 *     taken back, and left to `Log.append`, which tries again and names the trouble.
 * A3  A file of the operating system is written by its descriptor, any other by its own `append`, which writes all or
 *     nothing: so a simulated disk gets the same batches from the same code.
 */
#include "../wire/_slots.h"
#include "../wire/_walk.h"
#include "_plain.h"

#include <unistd.h>

#define LOG_OVERHEAD 12
#define HEADER_BYTES 61
#define CRC_FROM 21
#define NOT_PLAIN 0x28 /* log append time, control */
#define CODEC_BITS 0x07
#define TRANSACTIONAL 0x10
#define RELATIVE_OFFSET_MAX 0x7fffffff
#define SEQUENCE_MAX 0x7fffffff
#define UNHELD_BYTES (64 << 10) /* a longer write lets other threads run */

static PyTypeObject *LogType, *SegmentType, *FileType, *TailType, *EpochsType, *ProducersType, *EntryType, *SpanType;
static PyObject *crc32c, *name_index, *name_append, *name_size;
static int64_t batches_stored; /* since the start: a simulation shows by it that it came this way */
static Py_ssize_t newest_bytes_max, plain_bytes_max;

static Py_ssize_t log_end, log_active, log_tail, log_epochs, log_producers, log_roll_after, log_message_max,
    log_segment_bytes, log_after_max, log_before_max, log_interval, log_is_plain, segment_file, segment_base,
    segment_max_time, segment_max_offset, segment_since_index, file_fd, file_size, tail_ends, tail_positions,
    tail_newest, tail_newest_offset, epochs_latest, producers_entries, entry_next, entry_epoch, entry_first,
    entry_batches, entry_time;

static const Class CLASSES[] = {
    {"Log", &LogType}, {"Segment", &SegmentType}, {"RealFile", &FileType}, {"Tail", &TailType},
    {"EpochCache", &EpochsType}, {"Producers", &ProducersType}, {"ProducerEntry", &EntryType},
    {"BatchSpan", &SpanType}, {NULL},
};

static const Slot SLOTS[] = {
    {"Log", "end_offset", &log_end}, {"Log", "_active", &log_active}, {"Log", "_tail", &log_tail},
    {"Log", "_epochs", &log_epochs}, {"Log", "_producers", &log_producers}, {"Log", "_roll_after", &log_roll_after},
    {"Log", "_max_message_bytes", &log_message_max}, {"Log", "_segment_bytes", &log_segment_bytes},
    {"Log", "_after_max_ms", &log_after_max}, {"Log", "_before_max_ms", &log_before_max},
    {"Log", "_interval_bytes", &log_interval}, {"Log", "_is_plain", &log_is_plain},
    {"Segment", "file", &segment_file}, {"Segment", "base_offset", &segment_base},
    {"Segment", "max_timestamp", &segment_max_time}, {"Segment", "max_timestamp_offset", &segment_max_offset},
    {"Segment", "bytes_since_index", &segment_since_index}, {"RealFile", "_fd", &file_fd},
    {"RealFile", "size", &file_size}, {"Tail", "ends", &tail_ends}, {"Tail", "positions", &tail_positions},
    {"Tail", "newest", &tail_newest}, {"Tail", "newest_offset", &tail_newest_offset},
    {"EpochCache", "latest", &epochs_latest}, {"Producers", "entries", &producers_entries},
    {"ProducerEntry", "next_sequence", &entry_next}, {"ProducerEntry", "epoch", &entry_epoch},
    {"ProducerEntry", "transaction_first_offset", &entry_first}, {"ProducerEntry", "batches", &entry_batches},
    {"ProducerEntry", "last_timestamp", &entry_time}, {NULL},
};

typedef struct {
    int16_t attributes, epoch;
    int32_t delta, sequence;
    uint32_t crc;
    int64_t max_timestamp, producer_id;
} Header;

typedef struct {
    PyObject *active, *file, *tail, *entry;
    int is_real; /* whether the file is one of the operating system */
    int64_t offset, position, fd, interval, since_index, max_timestamp;
} Place;

static inline int64_t later(int64_t moment, int64_t by)
{
    int64_t sum;
    return __builtin_add_overflow(moment, by, &sum) ? INT64_MAX : sum;
}

static inline int64_t earlier(int64_t moment, int64_t by)
{
    int64_t rest;
    return __builtin_sub_overflow(moment, by, &rest) ? INT64_MIN : rest;
}

/* Whether all records are sound, as `inspection.is_plain` finds them. */
static int are_sound(const uint8_t *at, Py_ssize_t size, const Header *header, int64_t earliest, int64_t latest)
{
    Walk walk;
    walk.count = (int64_t)header->delta + 1;
    walk.base_time = read_64(at + 27);
    walk.is_append_time = walk.is_keyed = 0;
    walk.is_dense = 1;
    walk.earliest = earliest;
    walk.latest = latest;
    walk.find_low = 1; /* look for none */
    walk.find_high = walk.find_delta = 0;
    walk_begin(&walk);
    walk_feed(&walk, at + HEADER_BYTES, size - HEADER_BYTES);
    return walk_end(&walk) == SOUND && !walk.bad_count && walk.max_time == header->max_timestamp;
}

/* Whether the header is that of a plain batch, and one that this log takes; -1 with an error set. */
static int is_plain(PyObject *log, const uint8_t *at, Py_ssize_t size, int64_t now_ms, Header *header)
{
    int64_t message_max, after_max, before_max;
    if (size < HEADER_BYTES || size > plain_bytes_max || AT(log, log_is_plain) != Py_True || !whole(AT(log, log_message_max), &message_max)
        || !whole(AT(log, log_after_max), &after_max) || !whole(AT(log, log_before_max), &before_max))
        return 0;
    header->crc = (uint32_t)read_big(at + 17, 4);
    header->attributes = read_16(at + 21);
    header->delta = read_32(at + 23);
    header->max_timestamp = read_64(at + 35);
    header->producer_id = read_64(at + 43);
    header->epoch = read_16(at + 51);
    header->sequence = read_32(at + 53);
    if (read_64(at) != 0 || (int64_t)read_32(at + 8) + LOG_OVERHEAD != size || at[16] != 2 || size > message_max
        || header->delta < 0 || (int64_t)header->delta + 1 != read_32(at + 57) || header->attributes & NOT_PLAIN
        || header->attributes & CODEC_BITS || header->attributes & TRANSACTIONAL
        || header->max_timestamp > later(now_ms, after_max) || read_64(at + 27) < earlier(now_ms, before_max)
        || (header->producer_id >= 0 && header->sequence < 0))
        return 0;
    PyObject *rest = PyMemoryView_FromMemory((char *)at + CRC_FROM, size - CRC_FROM, PyBUF_READ);
    PyObject *sum = rest == NULL ? NULL : PyObject_CallOneArg(crc32c, rest);
    Py_XDECREF(rest);
    if (sum == NULL)
        return -1;
    int64_t found;
    int same = whole(sum, &found) && found == header->crc;
    Py_DECREF(sum);
    return same && are_sound(at, size, header, earlier(now_ms, before_max), later(now_ms, after_max));
}

/* Whether the producer may go on here without further ado; -1 with an error set. */
static int is_next(PyObject *log, const Header *header, Place *place)
{
    PyObject *producers = AT(log, log_producers);
    if (producers == NULL || !Py_IS_TYPE(producers, ProducersType) || !PyDict_CheckExact(AT(producers, producers_entries)))
        return 0;
    PyObject *id = PyLong_FromLongLong(header->producer_id);
    if (id == NULL)
        return -1;
    PyObject *entry = place->entry = PyDict_GetItemWithError(AT(producers, producers_entries), id);
    Py_DECREF(id);
    if (entry == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int64_t next, epoch, first;
    return Py_IS_TYPE(entry, EntryType) && whole(AT(entry, entry_next), &next) && whole(AT(entry, entry_epoch), &epoch)
           && whole(AT(entry, entry_first), &first) && next == header->sequence && epoch == header->epoch && first < 0;
}

/* Where the end of a file is; 0 when it is not open, or not to be known, and -1 with an error set. */
static int find_end(Place *place)
{
    PyObject *file = place->file;
    place->is_real = Py_IS_TYPE(file, FileType);
    if (place->is_real)
        return whole(AT(file, file_fd), &place->fd) && whole(AT(file, file_size), &place->position) && place->fd >= 0;
    PyObject *size = PyObject_GetAttr(file, name_size);
    int known = size == NULL ? -1 : whole(size, &place->position);
    Py_XDECREF(size);
    return known;
}

/* Whether there is room in the open file of the active segment; -1 with an error set. */
static int has_room(PyObject *log, Py_ssize_t size, const Header *header, Place *place)
{
    PyObject *active = place->active = AT(log, log_active), *tail = place->tail = AT(log, log_tail);
    int64_t roll_after, segment_bytes, base;
    if (active == NULL || !Py_IS_TYPE(active, SegmentType) || tail == NULL || !Py_IS_TYPE(tail, TailType)
        || !PyList_CheckExact(AT(tail, tail_ends)) || !PyList_CheckExact(AT(tail, tail_positions)))
        return 0;
    PyObject *file = place->file = AT(active, segment_file);
    int known = file == NULL ? 0 : find_end(place);
    if (known <= 0)
        return known;
    return whole(AT(log, log_end), &place->offset)
           && whole(AT(log, log_roll_after), &roll_after) && whole(AT(log, log_segment_bytes), &segment_bytes)
           && whole(AT(log, log_interval), &place->interval) && whole(AT(active, segment_base), &base)
           && whole(AT(active, segment_since_index), &place->since_index)
           && whole(AT(active, segment_max_time), &place->max_timestamp) && header->max_timestamp <= roll_after
           && place->position + size <= segment_bytes && place->offset + header->delta - base <= RELATIVE_OFFSET_MAX;
}

/* `append` of a file that is not of the operating system; 0 when it failed, -1 with an error that is not about files. */
static int write_by_method(const Place *place, const uint8_t *records, Py_ssize_t size)
{
    PyObject *data = PyBytes_FromStringAndSize((const char *)records, size);
    PyObject *done = data == NULL ? NULL : PyObject_CallMethodOneArg(place->file, name_append, data);
    Py_XDECREF(data);
    Py_XDECREF(done);
    if (done != NULL)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_OSError))
        return -1;
    PyErr_Clear();
    return 0;
}

static int write_all(const Place *place, const uint8_t *records, Py_ssize_t size)
{
    ssize_t written;
    if (!place->is_real)
        return write_by_method(place, records, size);
    if (size < UNHELD_BYTES)
        written = pwrite((int)place->fd, records, size, place->position);
    else {
        Py_BEGIN_ALLOW_THREADS
        written = pwrite((int)place->fd, records, size, place->position);
        Py_END_ALLOW_THREADS
    }
    if (written == size)
        return 1;
    if (written > 0 && ftruncate((int)place->fd, place->position) < 0)
        return 0; /* `Log.append` writes over it, or says what is wrong */
    return 0;
}

static int push(PyObject *list, int64_t value)
{
    PyObject *number = PyLong_FromLongLong(value);
    int failed = number == NULL || PyList_Append(list, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* `Producers.record`, for a producer that goes on where it was. */
static int remember(PyObject *entry, const Header *header, int64_t offset)
{
    int64_t last_sequence = ((int64_t)header->sequence + header->delta) & SEQUENCE_MAX;
    PyObject *fields = Py_BuildValue("((LLLLL))", (long long)header->sequence, (long long)last_sequence,
                                     (long long)offset, (long long)(offset + header->delta),
                                     (long long)header->max_timestamp);
    PyObject *span = fields == NULL ? NULL : PyTuple_Type.tp_new(SpanType, fields, NULL);
    PyObject *done = span == NULL ? NULL : PyObject_CallMethodOneArg(AT(entry, entry_batches), name_append, span);
    Py_XDECREF(fields);
    Py_XDECREF(span);
    Py_XDECREF(done);
    if (done == NULL)
        return -1;
    return put_whole(entry, entry_next, (last_sequence + 1) & SEQUENCE_MAX)
           | put_whole(entry, entry_time, header->max_timestamp);
}

static int add_to_index(PyObject *log, PyObject *segment, int64_t last_offset, int64_t position)
{
    PyObject *offset = PyLong_FromLongLong(last_offset), *at = PyLong_FromLongLong(position), *done = NULL;
    if (offset != NULL && at != NULL)
        done = PyObject_CallMethodObjArgs(log, name_index, segment, offset, at, NULL);
    Py_XDECREF(offset);
    Py_XDECREF(at);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Keep in step with what has been written. */
static int note(PyObject *log, const uint8_t *records, Py_ssize_t size, const Header *header, const Place *place)
{
    PyObject *active = place->active, *tail = place->tail;
    int64_t last_offset = place->offset + header->delta, since_index = place->since_index;
    if ((place->is_real && put_whole(place->file, file_size, place->position + size) < 0)
        || put_whole(log, log_end, last_offset + 1) < 0)
        return -1;
    if (header->max_timestamp > place->max_timestamp
        && (put_whole(active, segment_max_time, header->max_timestamp) < 0
            || put_whole(active, segment_max_offset, last_offset) < 0))
        return -1;
    if (since_index > place->interval) {
        if (add_to_index(log, active, last_offset, place->position) < 0)
            return -1;
        since_index = 0;
    }
    if (put_whole(active, segment_since_index, since_index + size) < 0
        || push(AT(tail, tail_ends), last_offset + 1) < 0 || push(AT(tail, tail_positions), place->position) < 0)
        return -1;
    int64_t newest_offset = -1;
    if (size <= newest_bytes_max) {
        if (put(tail, tail_newest, PyBytes_FromStringAndSize((const char *)records, size)) < 0)
            return -1;
        newest_offset = place->offset;
    }
    if (put_whole(tail, tail_newest_offset, newest_offset) < 0)
        return -1;
    return place->entry == NULL ? 0 : remember(place->entry, header, place->offset);
}

static Outcome append(PyObject *log, uint8_t *records, Py_ssize_t size, PyObject *leader_epoch, int64_t now_ms,
                      int64_t *base_offset)
{
    Header header;
    Place place = {.entry = NULL};
    int64_t epoch, latest;
    if (!Py_IS_TYPE(log, LogType))
        return LEFT;
    PyObject *epochs = AT(log, log_epochs);
    if (epochs == NULL || !Py_IS_TYPE(epochs, EpochsType) || !whole(AT(epochs, epochs_latest), &latest)
        || !whole(leader_epoch, &epoch) || epoch != latest)
        return LEFT;
    int plain = is_plain(log, records, size, now_ms, &header);
    if (plain > 0 && header.producer_id >= 0)
        plain = is_next(log, &header, &place);
    if (plain <= 0)
        return plain < 0 ? FAILED : LEFT;
    int room = has_room(log, size, &header, &place);
    if (room <= 0)
        return room < 0 ? FAILED : LEFT;
    uint64_t theirs = read_big(records + 12, 4);
    write_big(records, place.offset, 8);
    write_big(records + 12, epoch, 4);
    /* The active segment may be another once the index was full: hold on to what stands in `place`. */
    Py_INCREF(place.active);
    Py_INCREF(place.tail);
    Py_INCREF(place.file);
    Py_XINCREF(place.entry);
    int stored = write_all(&place, records, size);
    if (stored > 0) {
        batches_stored++;
        *base_offset = place.offset;
        stored = note(log, records, size, &header, &place) < 0 ? -1 : 1;
    } else {
        write_big(records, 0, 8);
        write_big(records + 12, theirs, 4);
    }
    Py_DECREF(place.active);
    Py_DECREF(place.tail);
    Py_DECREF(place.file);
    Py_XDECREF(place.entry);
    return stored < 0 ? FAILED : stored ? STORED : LEFT;
}

static PyObject *append_object(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    int64_t now_ms, base_offset;
    Py_buffer held;
    if (count != 4 || !whole(args[3], &now_ms))
        return PyErr_Format(PyExc_TypeError, "append takes a log, a batch, a leader epoch and the time");
    if (PyObject_GetBuffer(args[1], &held, PyBUF_WRITABLE) < 0)
        return NULL;
    Outcome outcome = append(args[0], held.buf, held.len, args[2], now_ms, &base_offset);
    PyBuffer_Release(&held);
    if (outcome == FAILED)
        return NULL;
    return outcome == LEFT ? Py_NewRef(Py_None) : PyLong_FromLongLong(base_offset);
}

static PyObject *learn(PyObject *module, PyObject *args)
{
    PyObject *classes, *sum;
    if (!PyArg_ParseTuple(args, "O!Onn", &PyDict_Type, &classes, &sum, &newest_bytes_max,
                          &plain_bytes_max)
        || learn_slots(classes, CLASSES, SLOTS) < 0)
        return NULL;
    Py_XSETREF(crc32c, Py_NewRef(sum));
    Py_RETURN_NONE;
}

static PyObject *stored_here(PyObject *module, PyObject *nothing)
{
    return PyLong_FromLongLong(batches_stored);
}

static PyMethodDef functions[] = {
    {"stored", stored_here, METH_NOARGS, "stored(): how many batches have been stored here since the start."},
    {"append", (PyCFunction)(void (*)(void))append_object, METH_FASTCALL,
     "append(log, batch, leader_epoch, now_ms): store a plain batch and return its offset, or None when it is left."},
    {"learn", learn, METH_VARARGS, "learn(classes, crc32c, newest_bytes_max, plain_bytes_max): learn where everything is."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ottla.log._plain", "Appends plain batches, quicker than Python could.", -1, functions,
};

PyMODINIT_FUNC PyInit__plain(void)
{
    PyObject *made = PyModule_Create(&module);
    PyObject *capsule = PyCapsule_New((void *)append, PLAIN_CAPSULE, NULL);
    name_index = PyUnicode_InternFromString("_index");
    name_append = PyUnicode_InternFromString("append");
    name_size = PyUnicode_InternFromString("size");
    if (made == NULL || capsule == NULL || name_index == NULL || name_append == NULL || name_size == NULL
        || PyModule_AddObject(made, "capsule", capsule) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
