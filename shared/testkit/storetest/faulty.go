package storetest

import (
	"context"
	"math/rand/v2"
	"sync"

	"gateway/shared/store"
)

// Faults are the probabilities, from 0 to 1, that a call to a Faulty store fails.
type Faults struct {
	Seed uint64 // the same calls in the same order fail in the same way
	// Throttled reads and writes return store.ErrThrottled and are not done.
	Throttled float64
	// Contended writes return store.ErrContended and are not done.
	Contended float64
	// Dropped writes return store.ErrUncertain and are not done.
	Dropped float64
	// LostAck writes return store.ErrUncertain although they are done. If the store
	// rejects one, it returns the rejection.
	LostAck float64
	// Only limits the faults to calls for which it returns true; nil means all. table is
	// empty for Transact.
	Only func(table store.TableName, call Call) bool
}

// Call is a method of the store.
type Call string

const (
	CallGet      Call = "Get"
	CallGetMany  Call = "GetMany"
	CallQuery    Call = "Query"
	CallPut      Call = "Put"
	CallPutMany  Call = "PutMany"
	CallUpdate   Call = "Update"
	CallDelete   Call = "Delete"
	CallTransact Call = "Transact"
)

// FaultyStore is a store with calls that fail occasionally.
type FaultyStore struct {
	store.Store
	mu     sync.Mutex
	faults Faults
	rng    *rand.Rand
	count  int
}

// Faulty wraps a store. Closing it closes the store.
func Faulty(s store.Store, f Faults) *FaultyStore {
	w := &FaultyStore{Store: s}
	w.Set(f)
	return w
}

// Set changes the faults from the next call on; the zero Faults ends them.
func (f *FaultyStore) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.rng = faults, rand.New(rand.NewPCG(faults.Seed, 1))
}

// InjectedFaults is how many calls were made to fail.
func (f *FaultyStore) InjectedFaults() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// draw decides one call: err is the error that it returns (nil if there is none), done
// reports whether it is done all the same.
func (f *FaultyStore) draw(table store.TableName, call Call) (done bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.Only != nil && !f.faults.Only(table, call) {
		return true, nil
	}
	write := call != CallGet && call != CallGetMany && call != CallQuery
	x := f.rng.Float64()
	for _, c := range []struct {
		chance float64
		err    error
		done   bool
		reads  bool
	}{
		{f.faults.Throttled, store.ErrThrottled, false, true},
		{f.faults.Contended, store.ErrContended, false, false},
		{f.faults.Dropped, store.ErrUncertain, false, false},
		{f.faults.LostAck, store.ErrUncertain, true, false},
	} {
		if x -= c.chance; x < 0 {
			if !write && !c.reads {
				return true, nil
			}
			f.count++
			return c.done, c.err
		}
	}
	return true, nil
}

// call calls do as draw decides.
func (f *FaultyStore) call(table store.TableName, call Call, do func() error) error {
	done, fault := f.draw(table, call)
	if done {
		if err := do(); err != nil {
			return err
		}
	}
	return fault
}

// Table wraps the store's table.
func (f *FaultyStore) Table(name store.TableName) store.Table {
	return faultyTable{f, name, f.Store.Table(name)}
}

// Transact wraps the store's.
func (f *FaultyStore) Transact(ctx context.Context, actions ...store.Action) error {
	return f.call("", CallTransact, func() error { return f.Store.Transact(ctx, actions...) })
}

type faultyTable struct {
	f     *FaultyStore
	name  store.TableName
	table store.Table
}

func (t faultyTable) Get(ctx context.Context, key store.Key, consistent bool) (item store.Item, ok bool, err error) {
	err = t.f.call(t.name, CallGet, func() (err error) {
		item, ok, err = t.table.Get(ctx, key, consistent)
		return err
	})
	return item, ok, err
}

func (t faultyTable) GetMany(ctx context.Context, keys []store.Key) (found map[store.Key]store.Item, err error) {
	err = t.f.call(t.name, CallGetMany, func() (err error) {
		found, err = t.table.GetMany(ctx, keys)
		return err
	})
	return found, err
}

func (t faultyTable) Query(ctx context.Context, q store.Query) (page store.Page, err error) {
	err = t.f.call(t.name, CallQuery, func() (err error) {
		page, err = t.table.Query(ctx, q)
		return err
	})
	return page, err
}

func (t faultyTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	return t.f.call(t.name, CallPut, func() error { return t.table.Put(ctx, row, conds...) })
}

func (t faultyTable) PutMany(ctx context.Context, rows []store.Row) error {
	return t.f.call(t.name, CallPutMany, func() error { return t.table.PutMany(ctx, rows) })
}

func (t faultyTable) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	err = t.f.call(t.name, CallUpdate, func() (err error) {
		before, after, err = t.table.Update(ctx, u)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return before, after, nil
}

func (t faultyTable) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	return t.f.call(t.name, CallDelete, func() error { return t.table.Delete(ctx, key, conds...) })
}
