/* What `log._plain` offers to other compiled parts, as a capsule. */
#ifndef OTTLA_PLAIN_H
#define OTTLA_PLAIN_H

#define PLAIN_CAPSULE "ottla.log._plain.capsule"

typedef enum { FAILED = -1, LEFT = 0, STORED = 1 } Outcome;

/* Append a batch to a log: STORED, with its base offset; LEFT to `Log.append`, with nothing changed; or FAILED, with an
 * error set. */
typedef Outcome (*PlainAppend)(PyObject *log, uint8_t *records, Py_ssize_t size, PyObject *leader_epoch, int64_t now_ms,
                               int64_t *base_offset);

#endif
