package egress

import (
	"sync"
	"sync/atomic"
)

// Hosts checks addresses as CheckURL does and remembers those that passed. Whether an
// address passes does not change while a process runs. What its name resolves to may
// change, and the dialer checks that each time.
type Hosts struct {
	policy Policy
	known  sync.Map // raw address -> its one spelling
	n      atomic.Int64
}

// maxHosts bounds the addresses that are remembered, because callers choose them.
const maxHosts = 1000

// NewHosts returns an empty memory for a policy.
func NewHosts(p Policy) *Hosts { return &Hosts{policy: p} }

// Check returns the address in its one spelling, or the error of CheckURL.
func (h *Hosts) Check(raw, field string) (string, error) {
	if s, ok := h.known.Load(raw); ok {
		return s.(string), nil
	}
	u, err := h.policy.CheckURL(raw, field)
	if err != nil {
		return "", err
	}
	s := u.String()
	if h.n.Add(1) <= maxHosts {
		h.known.Store(raw, s)
	}
	return s, nil
}
