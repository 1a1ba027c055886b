package upstream

import (
	"net/url"
	"sync"
	"sync/atomic"

	"gateway/shared/provider"
)

// URLs caches parsed URLs, which are immutable. The zero value is ready to use.
type URLs struct {
	known sync.Map // raw address -> *url.URL
	n     atomic.Int64
}

// maxURLs limits the cached URLs, since callers name hosts and models.
const maxURLs = 1000

// Exact is provider.ExactURL.
func (e *URLs) Exact(raw string) (*url.URL, error) {
	if u, ok := e.known.Load(raw); ok {
		return u.(*url.URL), nil
	}
	u, err := provider.ExactURL(raw)
	if err == nil && e.n.Add(1) <= maxURLs {
		e.known.Store(raw, u)
	}
	return u, err
}
