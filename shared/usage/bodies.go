package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/s2"

	"gateway/shared/seal"
)

// Bodies is the content of a request that a log stores. The relay encodes it, seals it
// with the organization's data key and puts it into Record.Bodies or into a blob.
type Bodies struct {
	RequestHeaders  []byte // JSON object of strings, secrets masked
	Request         []byte // sent by the client
	SentHeaders     []byte // JSON object of strings, secrets masked; only when translated
	Sent            []byte // to the provider, when it differs
	Received        []byte // from the provider, when it differs
	ResponseHeaders []byte
	Response        []byte // sent to the client; a stream as its events
	Truncated       bool   // a body exceeded the log's limit
}

// Withheld replaces a body in the log that guardrails could have denied or changed and have not
// judged.
const Withheld = `{"withheld":"The input guardrails of this request did not judge it"}`

// Versions of the encoding: a version, a flag byte, then the parts. In the plain version
// a part is its length and its bytes. In the packed one the length is shifted left by one
// bit; the lowest bit is set if the part is an S2 block, which follows its own length (4
// bytes, little endian).
const (
	bodiesPlain  = 1
	bodiesPacked = 2
)

const (
	// packFrom is the minimum size for compression: smaller parts save too little.
	packFrom = 4 << 10
	// trial is the size of the sample, from the middle of a part, that is compressed
	// first. The part is compressed if the sample shrinks to packBelow or less. Events of
	// a stream repeat each other: compressing them costs less than sealing and writing
	// the bytes saved. Prose shrinks only by a third and would cost ten times what it
	// saves, so it stays uncompressed.
	trial     = 2 << 10
	packBelow = trial * 3 / 8
	// maxPart limits the declared length of a packed part.
	maxPart = MaxEvent
)

func (b *Bodies) parts() [7]*[]byte {
	return [...]*[]byte{&b.RequestHeaders, &b.Request, &b.SentHeaders, &b.Sent, &b.Received, &b.ResponseHeaders, &b.Response}
}

func packs(p []byte) bool { return len(p) >= packFrom && len(p) <= maxPart }

// Size returns an upper bound of the bytes that Append writes.
func (b *Bodies) Size() int {
	n := 2
	for _, p := range b.parts() {
		n += binary.MaxVarintLen64 + len(*p)
		if packs(*p) {
			n += blockHead + s2.MaxEncodedLen(len(*p)) - len(*p)
		}
	}
	return n
}

// blockHead is the size of a block's length field.
const blockHead = 4

// Append appends the encoded bodies to dst.
func (b *Bodies) Append(dst []byte) []byte {
	version, cut := byte(bodiesPlain), byte(0)
	if b.Truncated {
		cut = 1
	}
	parts := b.parts()
	if slices.ContainsFunc(parts[:], func(p *[]byte) bool { return packs(*p) }) {
		version = bodiesPacked
	}
	dst = append(dst, version, cut)
	for _, p := range parts {
		if version == bodiesPlain {
			dst = append(binary.AppendUvarint(dst, uint64(len(*p))), *p...)
		} else {
			dst = appendPacked(dst, *p)
		}
	}
	return dst
}

// compressible reports whether compression of a part pays. scratch is memory for the
// trial.
func compressible(room, p []byte) bool {
	middle := len(p)/2 - trial/2
	return len(s2.Encode(room, p[middle:middle+trial])) <= packBelow
}

// appendPacked appends a part, compressed if that makes it much shorter.
func appendPacked(dst, p []byte) []byte {
	from := len(dst)
	if packs(p) {
		dst = slices.Grow(dst, binary.MaxVarintLen64+blockHead+s2.MaxEncodedLen(len(p)))
	}
	if packs(p) && compressible(dst[from:cap(dst)], p) {
		dst = binary.AppendUvarint(dst, uint64(len(p))<<1|1)
		at := len(dst) + blockHead
		block := s2.Encode(dst[at:cap(dst)], p)
		if len(block)+blockHead < len(p) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(block)))
			return dst[:at+len(block)]
		}
	}
	return append(binary.AppendUvarint(dst[:from], uint64(len(p))<<1), p...)
}

var (
	errBodiesVersion = errors.New("usage: bodies of an unknown version")
	errBodiesCut     = errors.New("usage: bodies are truncated or damaged")
)

// DecodeBodies decodes the output of Append; parts that were not compressed alias raw.
func DecodeBodies(raw []byte) (Bodies, error) {
	var b Bodies
	if len(raw) < 2 || raw[0] != bodiesPlain && raw[0] != bodiesPacked {
		return b, errBodiesVersion
	}
	b.Truncated = raw[1] == 1
	packed := raw[0] == bodiesPacked
	raw = raw[2:]
	for _, p := range b.parts() {
		n, size := binary.Uvarint(raw)
		if size <= 0 {
			return Bodies{}, errBodiesCut
		}
		raw = raw[size:]
		if packed {
			if n&1 != 0 {
				var err error
				if *p, raw, err = unpackPart(raw, n>>1); err != nil {
					return Bodies{}, err
				}
				continue
			}
			n >>= 1
		}
		if n > uint64(len(raw)) {
			return Bodies{}, errBodiesCut
		}
		*p, raw = raw[:n], raw[n:]
	}
	return b, nil
}

// unpackPart reads a block with n bytes of content and returns the rest of raw.
func unpackPart(raw []byte, n uint64) (part, rest []byte, err error) {
	if len(raw) < blockHead || n > maxPart {
		return nil, nil, errBodiesCut
	}
	length := uint64(binary.LittleEndian.Uint32(raw))
	if raw = raw[blockHead:]; length > uint64(len(raw)) {
		return nil, nil, errBodiesCut
	}
	block := raw[:length]
	if size, err := s2.DecodedLen(block); err != nil || uint64(size) != n {
		return nil, nil, errBodiesCut
	}
	if part, err = s2.Decode(nil, block); err != nil {
		return nil, nil, errBodiesCut
	}
	return part, raw[length:], nil
}

// BodiesBinding returns the location to which the record's sealed bodies are bound.
func (r *Record) BodiesBinding() seal.Binding {
	return seal.Binding{Org: r.Org, Table: "log", PK: r.Workspace, SK: r.ID}
}

// Retention is how long usage is stored; whole UTC days expire together. Zero means
// forever.
type Retention struct {
	Bodies  time.Duration // requests and responses
	Records time.Duration // records and their aggregates
}

// Defaults of an installation.
const (
	standardBodyDays   = 90
	standardRecordDays = 365
	maxRetentionDays   = 36_500
)

// ParseRetention parses the two settings of an installation, in days: "" is the default,
// 0 means forever. Bodies cannot outlive their records.
func ParseRetention(bodyDays, recordDays string) (Retention, error) {
	bodies, err := days(bodyDays, standardBodyDays)
	if err != nil {
		return Retention{}, fmt.Errorf("retention of bodies: %w", err)
	}
	records, err := days(recordDays, standardRecordDays)
	if err != nil {
		return Retention{}, fmt.Errorf("retention of records: %w", err)
	}
	if records > 0 && (bodies == 0 || bodies > records) {
		if bodyDays != "" {
			return Retention{}, errors.New("retention of bodies: cannot be longer than that of records")
		}
		bodies = records
	}
	return Retention{Bodies: bodies, Records: records}, nil
}

func days(text string, standard int) (time.Duration, error) {
	if text == "" {
		return time.Duration(standard) * secondsOfDay * time.Second, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxRetentionDays {
		return 0, fmt.Errorf("must be 0 (forever) to %d days", maxRetentionDays)
	}
	return time.Duration(n) * secondsOfDay * time.Second, nil
}

// WorkspaceRetention is the number of days for which an organization's workspaces store
// their logs, if that is shorter than the installation's retention of records; zero means
// not shorter. As with Retention, whole UTC days expire together.
type WorkspaceRetention struct {
	Standard int            // of every workspace that is not in Of
	Of       map[string]int // by workspace id
}

// HasOverrides reports whether any workspace has a retention shorter than the
// installation's.
func (k *WorkspaceRetention) HasOverrides() bool {
	if k.Standard > 0 {
		return true
	}
	for _, days := range k.Of {
		if days > 0 {
			return true
		}
	}
	return false
}

// Days returns for how many days a workspace stores its logs.
func (k *WorkspaceRetention) Days(workspace string) int {
	if days, ok := k.Of[workspace]; ok {
		return days
	}
	return k.Standard
}

// Cutoff returns the time of a workspace's oldest retained record, in microseconds since
// 1970.
func (k *WorkspaceRetention) Cutoff(workspace string, now time.Time) int64 {
	days := k.Days(workspace)
	if days <= 0 {
		return math.MinInt64
	}
	at := now.Unix() - int64(days)*secondsOfDay
	return (at - at%secondsOfDay) * 1_000_000
}
