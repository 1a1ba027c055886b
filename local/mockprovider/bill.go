package mockprovider

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"
)

// Usage holds what one request was charged for, in tokens. The classes do not overlap:
// Input was neither read from nor written to a prompt cache, and Output does not contain
// Reasoning.
type Usage struct {
	Input        int64 `json:"input"`
	CacheRead    int64 `json:"cache_read"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	Output       int64 `json:"output"`
	Reasoning    int64 `json:"reasoning"`
}

// prompt is the number of all tokens that were read.
func (u Usage) prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

func (u *Usage) add(v Usage) {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite5m += v.CacheWrite5m
	u.CacheWrite1h += v.CacheWrite1h
	u.Output += v.Output
	u.Reasoning += v.Reasoning
}

// price holds nano-dollars for a token of each class, as in the providers' price lists.
// Reasoning costs as much as output.
type price struct{ input, output, cacheRead, cacheWrite5m, cacheWrite1h int64 }

var prices = map[string]price{
	"gpt-4o":                     {2500, 10000, 1250, 0, 0},
	"gpt-4o-mini":                {150, 600, 75, 0, 0},
	"gpt-4.1":                    {2000, 8000, 500, 0, 0},
	"gpt-4.1-mini":               {400, 1600, 100, 0, 0},
	"gpt-5":                      {1250, 10000, 125, 0, 0},
	"gpt-5-mini":                 {250, 2000, 25, 0, 0},
	"o4-mini":                    {1100, 4400, 275, 0, 0},
	"gpt-3.5-turbo-instruct":     {1500, 2000, 0, 0, 0},
	"text-embedding-3-small":     {20, 0, 0, 0, 0},
	"text-embedding-3-large":     {130, 0, 0, 0, 0},
	"claude-3-5-sonnet-20241022": {3000, 15000, 300, 3750, 6000},
	"claude-sonnet-4-20250514":   {3000, 15000, 300, 3750, 6000},
	"claude-sonnet-4-5":          {3000, 15000, 300, 3750, 6000},
	"anthropic.claude-sonnet-4-5-20250929-v1:0": {3000, 15000, 300, 3750, 6000},
	"claude-haiku-4-5":                          {1000, 5000, 100, 1250, 2000},
	"claude-opus-4-5":                           {5000, 25000, 500, 6250, 10000},
	"command-r":                                 {150, 600, 0, 0, 0},
	"command":                                   {1000, 2000, 0, 0, 0},
	"embed-english-v3.0":                        {100, 0, 0, 0, 0},
	"gemini-2.5-flash":                          {300, 2500, 30, 0, 0},
}

func (p price) cost(u Usage) int64 {
	return u.Input*p.input + u.CacheRead*p.cacheRead + u.CacheWrite5m*p.cacheWrite5m +
		u.CacheWrite1h*p.cacheWrite1h + (u.Output+u.Reasoning)*p.output
}

// Row is one request on the bill.
type Row struct {
	Seq    int64  `json:"seq"`
	ID     string `json:"id"` // the id that the answer had
	Time   int64  `json:"time_unix_ms"`
	Path   string `json:"path"`
	Model  string `json:"model"`
	Status int    `json:"status"`
	Stream bool   `json:"stream"`
	Usage
	// NanoDollars is the price of Usage; Priced is false for a model without one.
	NanoDollars int64 `json:"nano_dollars"`
	Priced      bool  `json:"priced"`
	// Open: the response has not ended; nothing is charged yet.
	Open bool `json:"open"`
	// ClientGone: the client left before the end.
	ClientGone bool `json:"client_gone"`
	// Fault names the fault that ended the response early.
	Fault string `json:"fault,omitempty"`
}

// Sum is the total of some rows.
type Sum struct {
	Requests int64 `json:"requests"`
	Errors   int64 `json:"errors"`
	Usage
	NanoDollars int64 `json:"nano_dollars"`
	Unpriced    int64 `json:"unpriced"` // charged requests of models without a price
}

func (s *Sum) add(r *Row) {
	s.Requests++
	if r.Status >= 400 {
		s.Errors++
	}
	s.Usage.add(r.Usage)
	s.NanoDollars += r.NanoDollars
	if !r.Priced && r.Usage != (Usage{}) {
		s.Unpriced++
	}
}

// Bill is the response to GET /__mock/bill. Rows are in the order in which requests arrived.
// Old rows that were dropped count only in the sums; requests that are still open do not
// count in the sums.
type Bill struct {
	Total   Sum            `json:"total"`
	Models  map[string]Sum `json:"models"`
	Open    int            `json:"open"`
	Dropped int64          `json:"rows_dropped"`
	Rows    []Row          `json:"rows"`
}

// ledger stores the newest rows of the bill, at most keep of them.
type ledger struct {
	mu      sync.Mutex
	keep    int
	seq     int64
	rows    []*Row
	dropped int64
	total   Sum
	models  map[string]*Sum
	open    int
	epoch   int // counts resets, so that an old request does not close its row in a new bill
}

// entry is a row that may still change.
type entry struct {
	l     *ledger
	row   *Row
	epoch int
}

func (l *ledger) begin(path, model, id string, stream bool) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	r := &Row{Seq: l.seq, ID: id, Time: time.Now().UnixMilli(), Path: path, Model: model, Stream: stream, Open: true}
	if len(l.rows) >= l.keep {
		drop := max(1, l.keep/8)
		l.rows = append(l.rows[:0], l.rows[drop:]...)
		l.dropped += int64(drop)
	}
	l.rows = append(l.rows, r)
	l.open++
	return entry{l, r, l.epoch}
}

// close records the charge. A second call does nothing.
func (e entry) close(status int, u Usage, clientGone bool, fault string) {
	e.settle(status, u, clientGone, fault, 0)
}

// closeAt books a price that is not a price of tokens.
func (e entry) closeAt(status int, nanoDollars int64) {
	e.settle(status, Usage{}, false, "", nanoDollars)
}

// batched records rows of a batch, which cost half the price.
func (l *ledger) batched(path, model, id string, u Usage) {
	l.begin(path, model, id, false).settle(200, u, false, "", -prices[model].cost(u)/2)
}

func (e entry) settle(status int, u Usage, clientGone bool, fault string, nanoDollars int64) {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if !e.row.Open {
		return
	}
	r := e.row
	r.Open, r.Status, r.Usage, r.ClientGone, r.Fault = false, status, u, clientGone, fault
	p, ok := prices[r.Model]
	r.Priced, r.NanoDollars = ok || nanoDollars > 0, p.cost(u)+nanoDollars
	if e.epoch != e.l.epoch {
		return
	}
	e.l.open--
	e.l.total.add(r)
	m := e.l.models[r.Model]
	if m == nil {
		if e.l.models == nil {
			e.l.models = make(map[string]*Sum)
		}
		m = &Sum{}
		e.l.models[r.Model] = m
	}
	m.add(r)
}

func (l *ledger) bill() Bill {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := Bill{Total: l.total, Models: make(map[string]Sum, len(l.models)), Open: l.open, Dropped: l.dropped, Rows: make([]Row, 0, len(l.rows))}
	for name, s := range l.models {
		b.Models[name] = *s
	}
	for _, r := range l.rows {
		b.Rows = append(b.Rows, *r)
	}
	return b
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows, l.dropped, l.total, l.models, l.open = nil, 0, Sum{}, nil, 0
	l.epoch++
}

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
	_, _ = fmt.Fprint(h, c.hash, seedOf(s), len(s))
	c.hash = h.Sum64()
}

// mark notes the cache_control of a block that has just been added.
func (q *messageRequest) mark(b value) *apiError {
	if !q.cache.on {
		return nil
	}
	cc := b.get("cache_control")
	if !cc.given() {
		return nil
	}
	ttl := 5 * time.Minute
	if cc.get("ttl").s == "1h" {
		ttl = time.Hour
	}
	return q.cache.mark(q.prompt, ttl)
}

// mark ends a prefix; there may be four, and long ones come first.
func (c *cacheWalk) mark(prompt int64, ttl time.Duration) *apiError {
	for _, m := range c.marks {
		if m.ttl < ttl {
			return invalid("cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
		}
	}
	c.marks = append(c.marks, cacheMark{c.hash, prompt, ttl})
	if n := len(c.marks); n > 4 {
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
