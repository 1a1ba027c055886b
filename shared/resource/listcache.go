package resource

import (
	"cmp"
	"slices"
	"sync"

	"gateway/shared/store"
)

// maxCachedRows bounds the memory of cached lists, about 300 bytes a row. maxCachedLists
// bounds the lists that are known.
const (
	maxCachedRows  = 200_000
	maxCachedLists = 50_000
)

type listID struct {
	scope    store.Scope
	kind     Kind
	archived bool
}

// listPatch is what a change does to a list: the row with an order is replaced or made or,
// if gone is set, removed.
type listPatch struct {
	list listID
	row  Row
	gone bool
}

// listCache caches lists as they are stored. When a change of this process is committed, the
// lists that it affects are updated if nothing else wrote to them at the same time; otherwise
// they are evicted. The stored generation reveals changes of other processes: every change of
// this process adds one to it, so any further growth between two reads is due to another
// process.
type listCache struct {
	mu    sync.Mutex
	lists map[listID]*cachedList
	orgs  map[string]*ownChanges
	rows  int
	clock int64 // counts beginnings and ends of changes
	floor int64 // reads that began before this are not cached
}

type cachedList struct {
	rows    []Row
	have    bool
	under   stamp // stamp that was read before the rows
	touched int64 // clock of the last change that began or ended here
	writers int   // writers that have begun and not ended
}

// ownChanges are the changes of this process to an organization.
type ownChanges struct {
	done, moves int64 // commits; beginnings and ends
	writers     int
}

// stamp is a stored generation, with the number of this process's own commits when it was
// read. steady: no own change began or ended meanwhile, so the two numbers belong together.
type stamp struct {
	gen, own int64
	steady   bool
}

// holds reports whether rows that were read under s are still current.
func (s stamp) holds(now stamp) bool {
	return s.gen == now.gen || s.steady && now.steady && now.gen-s.gen == now.own-s.own
}

// own is the number of own commits to compare with, after the generation was read.
func (c *listCache) own(org string) ownChanges {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.orgs[org]; o != nil {
		return *o
	}
	return ownChanges{}
}

func (c *listCache) get(key listID, now stamp) ([]Row, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lists[key]
	if l == nil || !l.have || !l.under.holds(now) {
		return nil, false
	}
	return l.rows, true
}

// reading notes that a list is being read from the store. put may keep the rows unless a
// change was under way or has come since.
func (c *listCache) reading(key listID) (began int64, cacheable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lists[key]
	return c.clock, l == nil || l.writers == 0
}

func (c *listCache) put(key listID, began int64, under stamp, rows []Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lists[key]; began < c.floor || len(rows) > maxCachedRows || l != nil && (l.touched > began || l.writers > 0) {
		return
	}
	if c.rows+len(rows) > maxCachedRows || len(c.lists) >= maxCachedLists {
		c.evictAll()
	}
	l := c.list(key)
	c.rows += len(rows) - len(l.rows)
	l.rows, l.have, l.under = rows, true, under
}

// evictAll evicts all rows, and all lists without a writer.
func (c *listCache) evictAll() {
	c.rows, c.floor = 0, c.clock
	for key, l := range c.lists {
		l.rows, l.have = nil, false
		if l.writers == 0 {
			delete(c.lists, key)
		}
	}
}

func (c *listCache) list(key listID) *cachedList {
	l := c.lists[key]
	if l == nil {
		if c.lists == nil {
			c.lists = make(map[listID]*cachedList)
		}
		l = &cachedList{}
		c.lists[key] = l
	}
	return l
}

func (c *listCache) evict(l *cachedList) {
	c.rows -= len(l.rows)
	l.rows, l.have = nil, false
}

// listChange is a change of this process that is being committed.
type listChange struct {
	cache   *listCache
	org     string
	patches []listPatch
	lists   map[listID]bool // whether there was no other writer when it began
	began   int64
}

// begin notes a change before it is committed.
func (c *listCache) begin(org string, patches []listPatch) *listChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.orgs[org]
	if o == nil {
		if c.orgs == nil {
			c.orgs = make(map[string]*ownChanges)
		}
		o = &ownChanges{}
		c.orgs[org] = o
	}
	o.writers++
	o.moves++
	c.clock++
	ch := &listChange{cache: c, org: org, patches: patches, lists: make(map[listID]bool), began: c.clock}
	for i := range patches {
		key := patches[i].list
		if _, seen := ch.lists[key]; seen {
			continue
		}
		l := c.list(key)
		ch.lists[key] = l.writers == 0
		l.writers++
		l.touched = c.clock
	}
	return ch
}

// outcome is the result of a change.
type outcome uint8

const (
	nothingDone outcome = iota
	committedOne
	mayBeDone
)

// end brings the lists up to date. If it is not known whether the change was made, all
// lists of the organization are evicted.
func (ch *listChange) end(how outcome) {
	c := ch.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.orgs[ch.org]
	o.writers--
	o.moves++
	if how == committedOne {
		o.done++
	}
	c.clock++
	for key, alone := range ch.lists {
		l := c.list(key)
		l.writers--
		alone = alone && l.touched == ch.began
		if how == nothingDone {
			continue
		}
		l.touched = c.clock
		if how == mayBeDone || !alone || !l.have || !c.patch(key, l, ch.patches) {
			c.evict(l)
		}
	}
	if how == mayBeDone {
		c.evictEach(ch.org)
	}
}

// evictOrg evicts all lists of an organization, including those that are being read.
func (c *listCache) evictOrg(org string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	c.evictEach(org)
}

func (c *listCache) evictEach(org string) {
	for key, l := range c.lists {
		if key.scope.Org == org {
			c.evict(l)
		}
	}
	c.floor = c.clock
}

// patch applies changes to a list that others may be reading; false if they do not fit its
// contents.
func (c *listCache) patch(key listID, l *cachedList, patches []listPatch) bool {
	rows := make([]Row, len(l.rows), len(l.rows)+len(patches))
	copy(rows, l.rows)
	for i := range patches {
		p := &patches[i]
		if p.list != key {
			continue
		}
		at, found := slices.BinarySearchFunc(rows, p.row.Order, func(r Row, order string) int { return cmp.Compare(order, r.Order) }) // newest first
		switch {
		case p.gone && found:
			rows = slices.Delete(rows, at, at+1)
		case p.gone:
			// made and removed in one change, or not live before
		case found && rows[at].ID == p.row.ID:
			rows[at] = p.row
		case found:
			return false
		default:
			rows = slices.Insert(rows, at, p.row)
		}
	}
	c.rows += len(rows) - len(l.rows)
	l.rows = rows
	return true
}
