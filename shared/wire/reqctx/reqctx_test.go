package reqctx

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type (
	key   struct{}
	other struct{}
)

func begun() *Context {
	l := new(Context)
	l.Begin(context.WithValue(context.Background(), key{}, "v"))
	return l
}

func soon(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen", what)
	}
}

func TestLifeIsAContext(t *testing.T) {
	l := begun()
	if _, has := l.Deadline(); has || l.Err() != nil || l.Value(key{}) != "v" || l.Value(other{}) != nil {
		t.Fatal("a new life must live, with its values")
	}
	var bare Context
	if bare.Value(key{}) != nil || bare.Err() != nil {
		t.Fatal("the zero value has no values")
	}
	before := l.Done()
	select {
	case <-before:
		t.Fatal("done before the end")
	default:
	}
	l.End()
	l.End()
	soon(t, "the end", before)
	soon(t, "the end, asked for again", l.Done())
	if l.Err() != context.Canceled || context.Cause(l) != context.Canceled {
		t.Fatalf("%v, %v", l.Err(), context.Cause(l))
	}
	late := begun()
	late.End()
	soon(t, "an end that nobody had asked for", late.Done())
}

func TestChildrenEndWithALife(t *testing.T) {
	for name, child := range map[string]func(*Context) (context.Context, context.CancelFunc){
		"cancel":  func(l *Context) (context.Context, context.CancelFunc) { return context.WithCancel(l) },
		"timeout": func(l *Context) (context.Context, context.CancelFunc) { return context.WithTimeout(l, time.Hour) },
		"value, then cancel": func(l *Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(context.WithValue(l, other{}, 1))
		},
	} {
		l := begun()
		ctx, cancel := child(l)
		defer cancel()
		l.End()
		soon(t, name, ctx.Done())
		if !errors.Is(ctx.Err(), context.Canceled) || ctx.Value(key{}) != "v" {
			t.Errorf("%s: %v", name, ctx.Err())
		}
		l = begun()
		ctx, cancel = child(l)
		cancel()
		soon(t, name+" by itself", ctx.Done())
		if l.Err() != nil || l.first != nil {
			t.Errorf("%s: the life must go on and forget its child", name)
		}
	}
}

func TestEndlessRetainsValuesOnly(t *testing.T) {
	ended, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "v"))
	cancel()
	l := begun()
	l.End()
	for _, ctx := range []context.Context{l, ended} {
		if e := Endless(ctx); e.Err() != nil || e.Done() != nil || e.Value(key{}) != "v" {
			t.Errorf("%T: %v", ctx, e.Err())
		}
	}
	if e := Endless(new(Context)); e.Err() != nil || e.Value(key{}) != nil {
		t.Error("of a life without values")
	}
}

func TestWatchesAreNotifiedOfTheEndUnlessStopped(t *testing.T) {
	l := begun()
	std, cancel := context.WithCancel(context.Background())
	for _, c := range []struct {
		ctx context.Context
		end func()
	}{{l, l.End}, {std, cancel}} {
		var watches [5]Watch
		var called [5]chan struct{}
		for i := range watches {
			called[i] = make(chan struct{})
			watches[i].Begin(c.ctx, func() { close(called[i]) })
		}
		for _, i := range []int{2, 0, 4} { // middle, both ends
			if !watches[i].Stop() || watches[i].Stop() {
				t.Errorf("%T: watch %d must stop once", c.ctx, i)
			}
		}
		c.end()
		soon(t, "the call", called[1])
		soon(t, "the call", called[3])
		if watches[1].Stop() {
			t.Error("stopped though it was called")
		}
		var late Watch
		ch := make(chan struct{})
		late.Begin(c.ctx, func() { close(ch) })
		soon(t, "the call of who came late", ch)
		if late.Stop() {
			t.Error("stopped though it came late")
		}
		for _, i := range []int{0, 2, 4} {
			select {
			case <-called[i]:
				t.Error("called though it was stopped")
			default:
			}
		}
	}
	var never Watch
	if never.Stop() {
		t.Error("stopped though not begun")
	}
}

// A function is either called or its watch was stopped, never both or neither.
func TestWatchesStopWhileALifeEnds(t *testing.T) {
	for range 200 {
		l := begun()
		var calls, stops atomic.Int32
		var all, calling sync.WaitGroup
		for range 4 {
			all.Go(func() {
				var w Watch
				calling.Add(1)
				w.Begin(l, func() { calls.Add(1); calling.Done() })
				if w.Stop() {
					stops.Add(1)
					calling.Done()
				}
			})
		}
		all.Go(l.End)
		all.Wait()
		calling.Wait()
		if calls.Load()+stops.Load() != 4 {
			t.Fatalf("%d called, %d stopped", calls.Load(), stops.Load())
		}
	}
}
