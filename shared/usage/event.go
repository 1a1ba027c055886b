package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"time"

	"gateway/shared/pricing"
)

// An event is a record as bytes, one after the other in a journal or a message:
//
//	magic 0xA7 | version | length of the payload, 4 bytes little endian | payload | CRC-32C of all before
//
// The payload of version 1 is the record's fields in the order of AppendEvent: strings
// and lists as length and content, numbers as varints. Each later version appends to the
// earlier ones, and a record is written in the lowest version that can represent it:
// version 2 adds the explanation of routing decisions (see hasExplanation), version 3
// guardrail results, version 4 the pricing inputs, version 5 guardrail feedback, version
// 6 notes (see appendNotes). A gateway rejects versions newer than its own.
const (
	eventMagic     = 0xA7
	eventVersion   = 6
	eventRated     = 5
	eventPriced    = 4
	eventGuarded   = 3
	eventExplained = 2
	eventPlain     = 1
	eventHead      = 6
	eventTail      = 4
)

// MaxEvent limits the size of an event; a larger length in a file means damage.
const MaxEvent = 64 << 20

// Errors returned by the decoding functions.
var (
	ErrTruncated  = errors.New("usage: the event is truncated")
	ErrDamaged    = errors.New("usage: the event is damaged")
	ErrNewVersion = errors.New("usage: the event was written by a newer gateway")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendEvent appends the record as one event.
func (r *Record) AppendEvent(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, eventMagic, eventPlain, 0, 0, 0, 0)
	dst = r.appendPayload(dst)
	if dst[start+1] = r.version(); dst[start+1] >= eventExplained {
		dst = r.appendExplanation(dst)
	}
	if dst[start+1] >= eventGuarded {
		dst = r.appendGuards(dst)
	}
	if dst[start+1] >= eventPriced {
		dst = appendString(appendString(dst, r.Book), r.Tariff)
	}
	if dst[start+1] >= eventRated {
		dst = r.appendFeedback(dst)
	}
	if dst[start+1] >= eventVersion {
		dst = r.appendNotes(dst)
	}
	binary.LittleEndian.PutUint32(dst[start+2:], uint32(len(dst)-start-eventHead))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendAround appends the event without its bodies, which belong at offset cut.
func (r *Record) appendAround(dst []byte) (event []byte, cut int) {
	start := len(dst)
	dst = append(dst, eventMagic, eventPlain, 0, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(len(r.Bodies)))
	cut = len(dst)
	dst = r.appendBare(dst)
	if dst[start+1] = r.version(); dst[start+1] >= eventExplained {
		dst = r.appendExplanation(dst)
	}
	if dst[start+1] >= eventGuarded {
		dst = r.appendGuards(dst)
	}
	if dst[start+1] >= eventPriced {
		dst = appendString(appendString(dst, r.Book), r.Tariff)
	}
	if dst[start+1] >= eventRated {
		dst = r.appendFeedback(dst)
	}
	if dst[start+1] >= eventVersion {
		dst = r.appendNotes(dst)
	}
	binary.LittleEndian.PutUint32(dst[start+2:], uint32(len(dst)-start-eventHead+len(r.Bodies)))
	sum := crc32.Checksum(dst[start:cut], castagnoli)
	sum = crc32.Update(sum, castagnoli, r.Bodies)
	sum = crc32.Update(sum, castagnoli, dst[cut:])
	return binary.LittleEndian.AppendUint32(dst, sum), cut
}

func (r *Record) appendPayload(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Bodies)))
	return r.appendBare(append(b, r.Bodies...))
}

// appendBare appends the part of the payload after the bodies.
func (r *Record) appendBare(b []byte) []byte {
	b = appendString(b, r.ID)
	b = appendTime(b, r.Start)
	for _, s := range [...]string{r.Org, r.Workspace, r.WorkspaceSlug, r.KeyID, r.KeyType, r.UserID, r.EndUser, r.TraceID, r.SpanID, r.ParentSpanID, r.SpanName,
		r.Endpoint, r.Method, r.Path, r.RequestModel, r.ConfigID, r.ConfigSlug, r.Mode, r.PromptID, r.PromptSlug,
		r.Provider, r.ProviderSlug, r.IntegrationID, r.Model, r.OptionIndex, r.CacheStatus, r.FinishReason, r.ErrorCode, r.ErrorMessage, r.Blob} {
		b = appendString(b, s)
	}
	b = append(b, flags(r.Stream, r.ClientGone, r.Unconfirmed, r.Priced))
	for _, n := range [...]int64{r.RequestBytes, r.ResponseBytes, int64(r.ClientStatus), r.ConfigVersion, int64(r.RetryCount), int64(r.Cost), int64(r.CacheSaved),
		int64(r.TimeToFirstByte), int64(r.Duration), int64(r.UpstreamLatency), int64(r.GatewayTime)} {
		b = binary.AppendVarint(b, n)
	}
	b = appendUsage(b, &r.Usage)
	b = binary.AppendUvarint(b, uint64(len(r.Metadata)))
	for k, v := range r.Metadata {
		b = appendString(appendString(b, k), v)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Losses)))
	for _, s := range r.Losses {
		b = appendString(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Draws)))
	for i := range r.Draws {
		d := &r.Draws[i]
		b = binary.AppendVarint(binary.AppendUvarint(appendString(b, d.Path), uint64(d.Number)), int64(d.Index))
	}
	b = binary.AppendUvarint(b, uint64(len(r.Breakers)))
	for i := range r.Breakers {
		b = append(appendString(b, r.Breakers[i].Path), flags(r.Breakers[i].Open, r.Breakers[i].Probe, false, false))
	}
	b = binary.AppendUvarint(b, uint64(len(r.Attempts)))
	for i := range r.Attempts {
		b = r.Attempts[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(r.SettleSubjects)))
	for i := range r.SettleSubjects {
		s := &r.SettleSubjects[i]
		b = binary.AppendVarint(appendString(appendString(b, s.PK), s.Entry), s.Amount)
	}
	return b
}

func (a *Attempt) append(b []byte) []byte {
	for _, s := range [...]string{a.Provider, a.ProviderSlug, a.Model, a.OptionIndex, a.RequestID, a.ErrorCode} {
		b = appendString(b, s)
	}
	for _, n := range [...]int64{int64(a.Status), int64(a.Start), int64(a.Latency), int64(a.Cost)} {
		b = binary.AppendVarint(b, n)
	}
	return appendUsage(b, &a.Usage)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// noTime represents the zero time, which has no UnixNano.
const noTime = math.MinInt64

func appendTime(b []byte, t time.Time) []byte {
	n := int64(noTime)
	if !t.IsZero() {
		n = t.UnixNano()
	}
	return binary.AppendVarint(b, n)
}

func flags(a, b, c, d bool) (f byte) {
	for i, set := range [...]bool{a, b, c, d} {
		if set {
			f |= 1 << i
		}
	}
	return f
}

// limitedUsage is the bit of a usage head for pricing.Usage.Limited. It is the last bit,
// which leaves space for more classes.
const limitedUsage = 1 << 63

func appendUsage(b []byte, u *pricing.Usage) []byte {
	set := u.Classes()
	head := set<<1 | uint64(flags(u.Estimated, false, false, false))
	if u.Limited {
		head |= limitedUsage
	}
	b = binary.AppendUvarint(b, head)
	for ; set != 0; set &= set - 1 {
		b = binary.AppendVarint(b, u.N(pricing.Class(bits.TrailingZeros64(set))))
	}
	return b
}

// eventSize returns the length of the event at the start of b, or ErrTruncated if b ends
// before the event.
func eventSize(b []byte) (int, error) {
	if len(b) > 0 && b[0] != eventMagic {
		return 0, ErrDamaged
	}
	if len(b) < eventHead {
		return 0, ErrTruncated
	}
	n := binary.LittleEndian.Uint32(b[2:])
	if n > MaxEvent {
		return 0, ErrDamaged
	}
	size := eventHead + int(n) + eventTail
	if len(b) < size {
		return size, ErrTruncated
	}
	return size, nil
}

// DecodeEvent decodes a single event that occupies all of b. The record does not alias b.
// Errors: ErrTruncated, ErrDamaged, ErrNewVersion.
func DecodeEvent(b []byte) (Record, error) {
	var r Record
	n, err := r.decode(b)
	if err == nil && n != len(b) {
		err = ErrDamaged
	}
	return r, err
}

// DecodeEvents decodes the events in a message or in a part of a journal.
func DecodeEvents(b []byte) ([]Record, error) {
	var records []Record
	for len(b) > 0 {
		var r Record
		n, err := r.decode(b)
		if err != nil {
			return records, err
		}
		records = append(records, r)
		b = b[n:]
	}
	return records, nil
}

func (r *Record) decode(b []byte) (int, error) {
	size, bodies, err := r.decodeBare(b)
	if len(bodies) > 0 {
		r.Bodies = append([]byte(nil), bodies...)
	}
	return size, err
}

// decodeBare decodes the event without its bodies, which it returns as a slice of b.
func (r *Record) decodeBare(b []byte) (_ int, bodies []byte, _ error) {
	size, err := eventSize(b)
	if err != nil {
		return size, nil, err
	}
	end := size - eventTail
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return size, nil, ErrDamaged
	}
	if b[1] < eventPlain || b[1] > eventVersion {
		return size, nil, fmt.Errorf("%w: version %d, this one reads up to %d", ErrNewVersion, b[1], eventVersion)
	}
	payload := b[eventHead:end]
	n, w := binary.Uvarint(payload)
	if w <= 0 || n > uint64(len(payload)-w) {
		return size, nil, ErrDamaged
	}
	if !r.readBare(payload[w+int(n):], b[1]) {
		return size, nil, ErrDamaged
	}
	return size, payload[w : w+int(n)], nil
}

// readBare reads the part of the payload after the bodies; it returns false if it is
// invalid.
func (r *Record) readBare(b []byte, version byte) bool {
	c := cursor{rest: string(b), attempts: r.Attempts[:0], metadata: r.Metadata} // one allocation for all strings
	r.Attempts, r.Metadata = nil, nil
	c.record(r)
	if version > eventPlain {
		c.explanation(r)
	}
	if version > eventExplained {
		c.guards(r)
	}
	if version > eventGuarded {
		r.Book, r.Tariff = c.str(), c.str()
	}
	if version > eventPriced {
		c.feedback(r, version == eventRated)
	}
	if version > eventRated {
		c.notes(r)
	}
	return !c.bad && c.rest == ""
}

// cursor reads a payload from the front; bad is sticky.
type cursor struct {
	rest string
	bad  bool

	// Empty slices with memory reused from an earlier record.
	attempts []Attempt
	metadata map[string]string
}

func (c *cursor) record(r *Record) {
	r.ID = c.str()
	if n := c.int(); n != noTime {
		r.Start = time.Unix(0, n).UTC()
	}
	for _, s := range [...]*string{&r.Org, &r.Workspace, &r.WorkspaceSlug, &r.KeyID, &r.KeyType, &r.UserID, &r.EndUser, &r.TraceID, &r.SpanID, &r.ParentSpanID, &r.SpanName,
		&r.Endpoint, &r.Method, &r.Path, &r.RequestModel, &r.ConfigID, &r.ConfigSlug, &r.Mode, &r.PromptID, &r.PromptSlug,
		&r.Provider, &r.ProviderSlug, &r.IntegrationID, &r.Model, &r.OptionIndex, &r.CacheStatus, &r.FinishReason, &r.ErrorCode, &r.ErrorMessage, &r.Blob} {
		*s = c.str()
	}
	c.flags(&r.Stream, &r.ClientGone, &r.Unconfirmed, &r.Priced)
	r.RequestBytes, r.ResponseBytes = c.int(), c.int()
	r.ClientStatus, r.ConfigVersion, r.RetryCount = int(c.int()), c.int(), int(c.int())
	r.Cost, r.CacheSaved = pricing.NanoDollars(c.int()), pricing.NanoDollars(c.int())
	r.TimeToFirstByte, r.Duration = time.Duration(c.int()), time.Duration(c.int())
	r.UpstreamLatency, r.GatewayTime = time.Duration(c.int()), time.Duration(c.int())
	c.usage(&r.Usage)
	if n := c.count(2); n > 0 {
		if r.Metadata = c.metadata; r.Metadata == nil {
			r.Metadata = make(map[string]string, n)
		}
		for range n {
			k := c.str()
			r.Metadata[k] = c.str()
		}
	}
	if n := c.count(1); n > 0 {
		r.Losses = make([]string, n)
		for i := range r.Losses {
			r.Losses[i] = c.str()
		}
	}
	if n := c.count(3); n > 0 {
		r.Draws = make([]Draw, n)
		for i := range r.Draws {
			r.Draws[i] = Draw{Path: c.str(), Number: uint32(c.uint()), Index: int(c.int())}
		}
	}
	if n := c.count(2); n > 0 {
		r.Breakers = make([]Breaker, n)
		for i := range r.Breakers {
			r.Breakers[i].Path = c.str()
			c.flags(&r.Breakers[i].Open, &r.Breakers[i].Probe)
		}
	}
	if n := c.count(11); n > 0 {
		if r.Attempts = c.attempts; cap(r.Attempts) < n {
			r.Attempts = make([]Attempt, n)
		}
		r.Attempts = r.Attempts[:n]
		for i := range r.Attempts {
			c.attempt(&r.Attempts[i])
		}
	}
	if n := c.count(3); n > 0 {
		r.SettleSubjects = make([]Settle, n)
		for i := range r.SettleSubjects {
			r.SettleSubjects[i] = Settle{c.str(), c.str(), c.int()}
		}
	}
}

func (c *cursor) attempt(a *Attempt) {
	for _, s := range [...]*string{&a.Provider, &a.ProviderSlug, &a.Model, &a.OptionIndex, &a.RequestID, &a.ErrorCode} {
		*s = c.str()
	}
	a.Status, a.Start, a.Latency = int(c.int()), time.Duration(c.int()), time.Duration(c.int())
	a.Cost = pricing.NanoDollars(c.int())
	c.usage(&a.Usage)
}

func (c *cursor) uint() uint64 {
	var n uint64
	for i := 0; i < len(c.rest) && i < binary.MaxVarintLen64; i++ {
		b := c.rest[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			c.rest = c.rest[i+1:]
			return n
		}
	}
	c.bad, c.rest = true, ""
	return 0
}

func (c *cursor) int() int64 {
	n := c.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (c *cursor) str() string {
	n := c.uint()
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, ""
		return ""
	}
	s := c.rest[:n]
	c.rest = c.rest[n:]
	return s
}

// count reads the length of a list with items of at least size bytes.
func (c *cursor) count(size int) int {
	n := c.uint()
	if n > uint64(len(c.rest)/size) {
		c.bad, c.rest = true, ""
		return 0
	}
	return int(n)
}

func (c *cursor) flags(to ...*bool) {
	if c.rest == "" {
		c.bad = true
		return
	}
	f := c.rest[0]
	c.rest = c.rest[1:]
	for i, b := range to {
		*b = f&(1<<i) != 0
	}
}

func (c *cursor) usage(u *pricing.Usage) {
	head := c.uint()
	u.Estimated, u.Limited = head&1 != 0, head&limitedUsage != 0
	set := head &^ limitedUsage >> 1
	if set >= 1<<pricing.NumClasses {
		c.bad, c.rest = true, ""
		return
	}
	for ; set != 0; set &= set - 1 {
		u.Set(pricing.Class(bits.TrailingZeros64(set)), c.int())
	}
}
