package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"gateway/shared/pricing"
)

// Entry is a cached response.
type Entry struct {
	Body     []byte // complete JSON response, in the client's format
	Provider string // type of the provider that gave it
	Model    string // as the provider named it
	Finish   string // stop reason in the provider's own word
	Usage    pricing.Usage
	Cost     pricing.NanoDollars // what the answer cost, so what a hit saves
	Stored   time.Time           // precise to the second
	Expires  time.Time           // the same
}

// head is the part of an entry that comes before its body.
type head struct {
	Provider  string           `json:"provider,omitempty"`
	Model     string           `json:"model,omitempty"`
	Finish    string           `json:"finish,omitempty"`
	Usage     map[string]int64 `json:"usage,omitempty"`
	Estimated bool             `json:"estimated,omitempty"`
	Cost      int64            `json:"cost,omitempty"`
	Stored    int64            `json:"stored"`
	Expires   int64            `json:"expires"`
}

// entryVersion is the first byte of an entry.
const entryVersion = 1

// errCorrupt is given for bytes that are not an entry.
var errCorrupt = errors.New("cache: a kept answer cannot be read")

// append writes the entry: version, length of the head, head, body.
func (e *Entry) append(dst []byte) ([]byte, error) {
	h := head{
		Provider: e.Provider, Model: e.Model, Finish: e.Finish, Estimated: e.Usage.Estimated, Cost: int64(e.Cost),
		Stored: e.Stored.Unix(), Expires: e.Expires.Unix(),
	}
	for c := range pricing.NumClasses {
		if n, ok := e.Usage.Get(c); ok {
			if h.Usage == nil {
				h.Usage = map[string]int64{}
			}
			h.Usage[c.String()] = n
		}
	}
	text, err := json.Marshal(h)
	if err != nil {
		return dst, err
	}
	dst = append(dst, entryVersion)
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	dst = append(dst, text...)
	return append(dst, e.Body...), nil
}

// parseEntry reads what append wrote. The body is part of raw.
func parseEntry(raw []byte) (*Entry, error) {
	if len(raw) < 2 || raw[0] != entryVersion {
		return nil, errCorrupt
	}
	raw = raw[1:]
	n, size := binary.Uvarint(raw)
	if size <= 0 || n > uint64(len(raw)-size) {
		return nil, errCorrupt
	}
	text, body := raw[size:size+int(n)], raw[size+int(n):]
	var h head
	if json.Unmarshal(text, &h) != nil || len(body) == 0 {
		return nil, errCorrupt
	}
	e := &Entry{
		Body: body, Provider: h.Provider, Model: h.Model, Finish: h.Finish, Cost: pricing.NanoDollars(h.Cost),
		Stored: time.Unix(h.Stored, 0), Expires: time.Unix(h.Expires, 0),
	}
	for name, n := range h.Usage {
		if c, ok := pricing.ClassNamed(name); ok {
			e.Usage.Set(c, n)
		}
	}
	e.Usage.Estimated = h.Estimated
	return e, nil
}
