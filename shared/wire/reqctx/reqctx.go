// Package reqctx has the context of one request. Every request on the hot path needs it,
// but almost none waits for its end, so it creates its channel and list on demand.
package reqctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a context that ends when End is called. The zero value has not ended and has no
// values. It must not be copied, and its memory must not be used again, because receivers
// of the context may keep it.
type Context struct {
	values context.Context // nil if there is none
	ended  atomic.Bool

	mu    sync.Mutex
	done  chan struct{} // nil until it is needed
	first *Watch        // the first of those that wait for the end
}

var _ context.Context = (*Context)(nil)

// Begin returns a new life the values of another context, which must never end.
func (l *Context) Begin(values context.Context) { l.values = values }

// Endless returns the values of a context without its end.
func Endless(ctx context.Context) context.Context {
	if l, ok := ctx.(*Context); ok && l.values != nil {
		return l.values
	}
	return context.WithoutCancel(ctx)
}

// End ends the life. A second call does nothing.
func (l *Context) End() {
	if l.ended.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended.Swap(true) {
		return
	}
	if l.done != nil {
		close(l.done)
	}
	for w := l.first; w != nil; {
		next := w.next
		w.of, w.prev, w.next = nil, nil, nil
		go w.f()
		w = next
	}
	l.first = nil
}

// Deadline implements context.Context: there is none.
func (l *Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Err implements context.Context.
func (l *Context) Err() error {
	if l.ended.Load() {
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (l *Context) Value(key any) any {
	if l.values == nil {
		return nil
	}
	return l.values.Value(key)
}

// Done implements context.Context.
func (l *Context) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.ended.Load() {
			close(l.done)
		}
	}
	return l.done
}

// AfterFunc is called by package context for contexts of another kind.
func (l *Context) AfterFunc(f func()) (stop func() bool) {
	w := new(Watch)
	w.begin(l, f)
	return w.Stop
}

// Watch waits for the end of a context and then calls a function in a separate goroutine.
// It is part of its owner's memory and is used once. The zero value waits for nothing.
type Watch struct {
	f          func()
	life       *Context
	of         *Context // while it waits; guarded by the life's lock, like the links
	prev, next *Watch
	stop       func() bool // for a context that is not a Life
}

// Begin calls f when ctx ends, or at once if it has ended, as context.AfterFunc does.
func (w *Watch) Begin(ctx context.Context, f func()) {
	if l, ok := ctx.(*Context); ok {
		w.begin(l, f)
		return
	}
	w.stop = context.AfterFunc(ctx, f)
}

func (w *Watch) begin(l *Context, f func()) {
	w.f, w.life = f, l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended.Load() {
		go f()
		return
	}
	if w.of, w.next = l, l.first; l.first != nil {
		l.first.prev = w
	}
	l.first = w
}

// Stop stops watching. It returns true if this call prevents the function call. It
// returns false if the function was called, or if the watch was stopped before or never
// begun.
func (w *Watch) Stop() bool {
	if w.stop != nil {
		return w.stop()
	}
	l := w.life
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.of == nil {
		return false
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.of, w.prev, w.next = nil, nil, nil
	return true
}
