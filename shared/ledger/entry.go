package ledger

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// entry is one open reservation in a spend row: the amounts taken from available and the
// time at which repair may settle it. It is stored under 8 random characters of the map
// "open", in few bytes, because each update of a row costs by the row's size:
//
//	flags (1 byte: slots, ULID, beyond, turn, repairing), due (4 bytes, Unix
//	seconds), amounts of its slots (varints), beyond (varints, unless nothing),
//	turn (varint, unless 0), request id (16 bytes when it is a ULID).
//
// Updates compare the whole value, which detects concurrent changes of an entry (a raise
// with a lost response, a repair that began).
type entry struct {
	slots     uint8 // bit i: slot i was active
	repairing bool
	due       int64 // Unix seconds
	amounts   amounts
	// beyond is the additional amount that the request may use, for which this subject
	// has no budget or which another entry of the request holds. It is only for the
	// record, see Unconfirmed.
	beyond  amounts
	turn    int // number of the request's earlier entries of this subject that may have been written
	request string
}

// total returns the amounts for a record of the entry.
func (e *entry) total() amounts { return sum(e.amounts, e.beyond) }

const (
	entryULID      = 0x10
	entryBeyond    = 0x20
	entryTurn      = 0x40
	entryRepairing = 0x80
	entrySlots     = 1<<numSlots - 1
)

func (e *entry) encode() []byte {
	flags := e.slots
	id, packed := packULID(e.request)
	if packed {
		flags |= entryULID
	}
	if e.repairing {
		flags |= entryRepairing
	}
	b := make([]byte, 0, 48)
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(e.due))
	for i, n := range e.amounts {
		if e.slots&(1<<i) != 0 {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	if !e.beyond.zero() {
		b[0] |= entryBeyond
		for _, n := range e.beyond {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	if e.turn > 0 {
		b[0] |= entryTurn
		b = binary.AppendUvarint(b, uint64(e.turn))
	}
	if packed {
		return append(b, id[:]...)
	}
	return append(b, e.request...)
}

// packULID returns the bytes of a ULID in its canonical form.
func packULID(s string) (id ulid.ULID, ok bool) {
	var text [ulid.EncodedSize]byte
	id, err := ulid.ParseStrict(s)
	return id, err == nil && id.MarshalTextTo(text[:]) == nil && string(text[:]) == s
}

var errEntry = errors.New("ledger: an open entry cannot be read")

func decodeEntry(b []byte) (entry, error) {
	e, request, err := decodeNumbers(b)
	switch {
	case err != nil:
		return entry{}, err
	case b[0]&entryULID != 0:
		e.request = ulid.ULID(request).String()
	default:
		e.request = string(request)
	}
	return e, nil
}

// decodeNumbers decodes everything but the request id, which it returns as stored.
func decodeNumbers(b []byte) (e entry, request []byte, err error) {
	if len(b) < 5 {
		return entry{}, nil, errEntry
	}
	flags, d := b[0], numbers{b: b[5:]}
	e = entry{slots: flags & entrySlots, repairing: flags&entryRepairing != 0, due: entryDue(b)}
	for i := range e.amounts {
		if e.slots&(1<<i) != 0 {
			e.amounts[i] = d.next()
		}
	}
	if flags&entryBeyond != 0 {
		for i := range e.beyond {
			e.beyond[i] = d.next()
		}
	}
	if flags&entryTurn != 0 {
		e.turn = int(d.next())
	}
	if d.bad || flags&entryULID != 0 && len(d.b) != len(ulid.ULID{}) {
		return entry{}, nil, errEntry
	}
	return e, d.b, nil
}

// numbers reads nonnegative varints.
type numbers struct {
	b   []byte
	bad bool
}

func (d *numbers) next() int64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || int64(n) < 0 {
		d.bad, size = true, len(d.b)
	}
	d.b = d.b[size:]
	return int64(n)
}

// entryPast reports, without decoding, whether the entry is past due.
func entryPast(b []byte, now int64) bool { return entryDue(b) <= now }

// entryDue returns, without decoding, when repair may settle the entry.
func entryDue(b []byte) int64 {
	if len(b) < 5 {
		return never
	}
	return int64(binary.BigEndian.Uint32(b[1:]))
}

// newEntryID returns 48 random bits in 8 characters. Reserving requires that the id is
// unused in its row.
func newEntryID() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], rand.Uint64())
	var text [8]byte
	base64.RawURLEncoding.Encode(text[:], b[:6])
	return string(text[:])
}

// settlement encodes the Entry of a usage.Settle: the entry's id, its tokens and
// requests, and the sort key of its row. Amount is its cost.
func settlement(key store.Key, id string, a amounts) usage.Settle {
	b := append(append(make([]byte, 0, 64), id...), ':')
	b = append(strconv.AppendInt(b, a[slotTokens], 10), ':')
	b = append(strconv.AppendInt(b, a[slotRequests], 10), ':')
	return usage.Settle{PK: key.PK(), Entry: string(append(b, key.SK()...)), Amount: a[slotCost]}
}

var errSettlement = errors.New("ledger: not a settlement of this ledger")

func parseSettlement(s usage.Settle) (key store.Key, id string, a amounts, err error) {
	var f [4]string
	rest, found := s.Entry, true
	for i := range f[:3] {
		f[i], rest, found = strings.Cut(rest, ":")
	}
	f[3] = rest
	if !found || f[0] == "" || f[3] == "" || !strings.HasPrefix(s.PK, "ORG#") {
		return key, "", a, errSettlement
	}
	a[slotCost] = s.Amount
	for i, text := range f[1:3] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return key, "", a, errSettlement
		}
		a[slotTokens+i] = n
	}
	for _, n := range a {
		if n < 0 {
			return key, "", a, errSettlement
		}
	}
	return store.RawKey(s.PK, f[3]), f[0], a, nil
}

// entryBytes returns the bytes of an entry as it is stored.
func entryBytes(v store.Value) []byte {
	b, _ := v.([]byte)
	return b
}

func dueAt(now time.Time) int64 { return now.Add(SettleAfter).Unix() }
