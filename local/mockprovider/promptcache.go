package mockprovider

import (
	"hash/fnv"
	"sync"
	"time"
)

// cacheWalk traverses the prompt in the order in which it is cached (tools, system, messages)
// and collects the positions with cache_control.
type cacheWalk struct {
	on    bool // something is marked
	hash  uint64
	marks []cacheMark
}

type cacheMark struct {
	hash   uint64
	tokens int64
	ttl    time.Duration
}

// add counts a text as part of the prompt.
func (c *cacheWalk) add(j *job, s string) { c.addTokens(j, s, tokensOf(s)) }

func (c *cacheWalk) addTokens(j *job, s string, tokens int64) {
	j.prompt += tokens
	if !c.on {
		return
	}
	h := fnv.New64a()
	var prev [8]byte
	for i := range prev {
		prev[i] = byte(c.hash >> (8 * i))
	}
	_, _ = h.Write(prev[:])
	sum := uint64(seedOf(s))<<32 | uint64(uint32(len(s)))
	for i := range prev {
		prev[i] = byte(sum >> (8 * i))
	}
	_, _ = h.Write(prev[:])
	c.hash = h.Sum64()
}

// mark notes the cache_control of a block that has just been added.
func (q *messageRequest) mark(b value, at string) *apiError {
	if !q.cache.on {
		return nil
	}
	cc := b.get("cache_control")
	if !cc.given() {
		return nil
	}
	if e := only(cc, at+".cache_control.ephemeral", "type", "ttl"); e != nil {
		return e
	}
	if cc.get("type").s != "ephemeral" {
		return invalid("%s.cache_control.type: Input should be 'ephemeral'", at)
	}
	ttl := 5 * time.Minute
	switch t := cc.get("ttl"); {
	case !t.given() || t.s == "5m":
	case t.s == "1h":
		ttl = time.Hour
		for _, m := range q.cache.marks {
			if m.ttl < ttl {
				return invalid("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.", at)
			}
		}
	default:
		return invalid("%s.cache_control.ephemeral.ttl: Input should be '5m' or '1h'", at)
	}
	q.cache.marks = append(q.cache.marks, cacheMark{q.cache.hash, q.prompt, ttl})
	if n := len(q.cache.marks); n > 4 {
		return invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}

// promptCaches stores the written prefixes and their expiry.
type promptCaches struct {
	mu   sync.Mutex
	warm map[uint64]time.Time
}

const maxWarm = 10_000

func (p *promptCaches) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warm = nil
}

// charge splits a prompt into the tokens that are read from the cache, those that are
// written to it, and the rest; it also writes the prefixes. A prefix shorter than least is
// not cached.
func (p *promptCaches) charge(model string, prompt int64, marks []cacheMark, least int64, now time.Time) Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warm == nil || len(p.warm) > maxWarm {
		p.warm = make(map[uint64]time.Time)
	}
	of := uint64(seedOf(model))
	u := Usage{}
	for _, m := range marks {
		if m.tokens < least {
			continue
		}
		key := m.hash ^ of
		if until, ok := p.warm[key]; ok && now.Before(until) {
			u.CacheRead, u.CacheWrite5m, u.CacheWrite1h = m.tokens, 0, 0
		} else if done := u.CacheRead + u.CacheWrite5m + u.CacheWrite1h; m.ttl == time.Hour {
			u.CacheWrite1h += m.tokens - done
		} else {
			u.CacheWrite5m += m.tokens - done
		}
		p.warm[key] = now.Add(m.ttl)
	}
	u.Input = prompt - u.CacheRead - u.CacheWrite5m - u.CacheWrite1h
	return u
}
