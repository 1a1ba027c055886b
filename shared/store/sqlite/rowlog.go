package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"slices"
	"strconv"

	"gateway/shared/store"
)

// A log is a file of fixed size that is written from its start again for each sequence
// number. It is a series of records:
//
//	length of the payload (4 bytes) | CRC-32C of sequence number and payload (4 bytes) | payload
//
// The payload of the first record is the sequence number. Each further record is a change of
// one row: all of it when it is the first of that row in this log, otherwise the attributes
// that the update wrote. The log ends where the next record is not valid for its sequence
// number: after a kill in the middle of a record, or where an older sequence begins.
//
//	'F' number table pk sk expires item    row gets the number
//	'D' number expires count (attribute key value)...
const (
	logBytes      = 2 << 20
	logRecordHead = 8

	recordFull  = 'F'
	recordDelta = 'D'
	typeAbsent  = 'x' // in a delta: the attribute or key was removed
)

var (
	errLogFull   = errors.New("store: the write-ahead log is full")
	errLogBroken = errors.New("store: the write-ahead log cannot be written")
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

func logPath(database string) string { return database + "-log" }

// writeLog is a log that is being written. Its caller locks it.
type writeLog struct {
	file *os.File
	mem  []byte // the file, mapped; nil if it is not
	seed uint32 // checksum of the sequence number, which that of each record continues
	end  int
	rows int // numbers that full records have used
	head [logRecordHead]byte
}

// createLog creates log i (0 or 1). The file is filled, so that storing into the mapping
// never finds the disk full.
func createLog(path string, i int, mapped bool) (*writeLog, error) {
	f, err := os.OpenFile(path+strconv.Itoa(i), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, logBytes)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	l := &writeLog{file: f}
	if mapped {
		l.mem, _ = mapShared(f, logBytes) // else each record is a write(2)
	}
	return l, nil
}

func (l *writeLog) close(remove bool) error {
	var err error
	if l.mem != nil {
		err = unmapShared(l.mem)
	}
	err = errors.Join(err, l.file.Close())
	if remove {
		err = errors.Join(err, os.Remove(l.file.Name()))
	}
	return err
}

// begin starts the log again with a sequence number that was not used before.
func (l *writeLog) begin(seq uint64) error {
	l.seed, l.end, l.rows = seedOf(seq), 0, 0
	return l.append(binary.LittleEndian.AppendUint64(nil, seq))
}

// append adds a record. It returns errLogFull or an error that wraps errLogBroken.
func (l *writeLog) append(payload []byte) error {
	if l.end+logRecordHead+len(payload) > logBytes {
		return errLogFull
	}
	binary.LittleEndian.PutUint32(l.head[:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(l.head[4:], crc32.Update(l.seed, castagnoli, payload))
	if l.mem == nil {
		record := append(l.head[:len(l.head):len(l.head)], payload...)
		if _, err := l.file.WriteAt(record, int64(l.end)); err != nil {
			return errors.Join(errLogBroken, err)
		}
	} else if err := l.store(payload); err != nil {
		return errors.Join(errLogBroken, err)
	}
	l.end += logRecordHead + len(payload)
	return nil
}

// store copies a record into the mapping. A page that the disk lost is an error, not the end
// of the process.
func (l *writeLog) store(payload []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("store: page fault in %s: %v", l.file.Name(), r)
		}
	}()
	copy(l.mem[l.end:], l.head[:])
	copy(l.mem[l.end+logRecordHead:], payload)
	return nil
}

func seedOf(seq uint64) uint32 {
	return crc32.Checksum(binary.LittleEndian.AppendUint64(nil, seq), castagnoli)
}

// appendFullRecord encodes a complete row.
func appendFullRecord(dst []byte, number int, k cacheKey, expires int64, item store.Item) []byte {
	dst = binary.AppendUvarint(append(dst, recordFull), uint64(number))
	dst = binary.AppendUvarint(dst, uint64(k.table))
	dst = appendString(appendString(dst, k.key.PK()), k.key.SK())
	dst = binary.AppendVarint(dst, expires)
	return appendItem(dst, item)
}

// appendDeltaRecord encodes what an update writes; sums are those of its increments.
func appendDeltaRecord(dst []byte, number int, expires int64, u *store.Update, sums []int64) []byte {
	dst = binary.AppendUvarint(append(dst, recordDelta), uint64(number))
	dst = binary.AppendVarint(dst, expires)
	dst = binary.AppendUvarint(dst, uint64(len(u.Set)+len(u.Add)+len(u.Remove)))
	for i := range u.Set {
		dst = appendValue(appendPath(dst, u.Set[i].Path), u.Set[i].Value)
	}
	for i := range u.Add {
		dst = binary.AppendVarint(append(appendPath(dst, u.Add[i].Path), typeInt), sums[i])
	}
	for i := range u.Remove {
		dst = append(appendPath(dst, u.Remove[i]), typeAbsent)
	}
	return dst
}

func appendPath(dst []byte, p store.Path) []byte {
	return appendString(appendString(dst, p.Attr), p.Key)
}

// loggedRow is a row as a log leaves it.
type loggedRow struct {
	cacheKey
	expires int64
	item    store.Item
}

// readLog returns the sequence number and the rows of a log; seq is zero if nothing was
// logged.
func readLog(b []byte) (seq uint64, rows []loggedRow, err error) {
	record, rest := nextRecord(b)
	if len(record) != logRecordHead+8 {
		return 0, nil, nil
	}
	seq = binary.LittleEndian.Uint64(record[logRecordHead:])
	seed := seedOf(seq)
	if !validRecord(seed, record) {
		return 0, nil, nil
	}
	for {
		if record, rest = nextRecord(rest); !validRecord(seed, record) {
			return seq, rows, nil
		}
		if rows, err = applyRecord(rows, record[logRecordHead:]); err != nil {
			return 0, nil, err
		}
	}
}

// nextRecord splits the first record off; record is nil if it is incomplete.
func nextRecord(b []byte) (record, rest []byte) {
	if len(b) < logRecordHead {
		return nil, nil
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || uint64(n) > uint64(len(b)-logRecordHead) {
		return nil, nil
	}
	end := logRecordHead + int(n)
	return b[:end:end], b[end:]
}

func validRecord(seed uint32, record []byte) bool {
	return record != nil && binary.LittleEndian.Uint32(record[4:]) == crc32.Update(seed, castagnoli, record[logRecordHead:])
}

func applyRecord(rows []loggedRow, b []byte) ([]loggedRow, error) {
	d := decoder{b: b, off: 1}
	number := int(d.uvarint())
	switch b[0] {
	case recordFull:
		table := int(d.uvarint())
		pk, sk := d.string(), d.string()
		expires := d.varint()
		if d.err != nil || number != len(rows)+1 || table >= len(store.TableNames) {
			return nil, errCorrupt
		}
		item, err := decodeItem(b[d.off:])
		if err != nil {
			return nil, err
		}
		return append(rows, loggedRow{cacheKey{table, store.RawKey(pk, sk)}, expires, item}), nil
	case recordDelta:
		expires, n := d.varint(), d.count()
		if d.err != nil || number < 1 || number > len(rows) {
			return nil, errCorrupt
		}
		row := &rows[number-1]
		row.expires = expires
		for range n {
			attr, key := d.string(), d.string()
			var v store.Value
			if t := d.byte(); t != typeAbsent {
				v = d.valueOf(t)
			}
			if d.err != nil {
				return nil, d.err
			}
			if err := setLogged(row.item, attr, key, v); err != nil {
				return nil, err
			}
		}
		if d.off != len(b) {
			return nil, errCorrupt
		}
		return rows, nil
	}
	return nil, errCorrupt
}

// setLogged sets one path of an item; a nil value removes it.
func setLogged(item store.Item, attr, key string, v store.Value) error {
	switch {
	case key == "" && v == nil:
		delete(item, attr)
	case key == "":
		item[attr] = v
	default:
		m := item.Map(attr)
		if m == nil && v != nil {
			return errCorrupt
		}
		if v == nil {
			delete(m, key)
		} else {
			m[key] = v
		}
	}
	return nil
}

// recoverLogs returns what the logs of an earlier process have beyond the database, as a
// flush; nil if nothing.
func recoverLogs(path string, flushed uint64) (*flushOp, error) {
	type logged struct {
		seq  uint64
		rows []loggedRow
	}
	var logs []logged
	for i := range 2 {
		b, err := os.ReadFile(path + strconv.Itoa(i))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		seq, rows, err := readLog(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %s%d", err, path, i)
		}
		if seq > flushed {
			logs = append(logs, logged{seq, rows})
		}
	}
	slices.SortFunc(logs, func(a, b logged) int { return int(int64(a.seq - b.seq)) })
	var all *flushOp
	for _, l := range logs {
		if all == nil {
			all = &flushOp{}
		}
		all.seq = l.seq
		for _, r := range l.rows {
			all.rows = append(all.rows, change{kind: changePut, table: r.table, key: r.key, item: r.item, expires: r.expires})
		}
	}
	return all, nil
}

func removeLogs(path string) error {
	for i := range 2 {
		if err := os.Remove(path + strconv.Itoa(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}
