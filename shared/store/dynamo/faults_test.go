package dynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/testkit/dynamotest"
	"gateway/shared/testkit/storetest"
)

// fault is what happens to one call on its way to DynamoDB.
type fault uint8

const (
	pass       fault = iota
	throttle         // rejected, not done
	conflict         // rejected because of a transaction, not done
	inProgress       // the token's transaction is still running
	internal         // 500, not done
	cut              // the connection is closed, not done
	lostReply        // done, then the connection is closed
	lateError        // done, then 500
	torn             // done, and the response breaks off in the middle
	partial          // a batch of which half is done
	idle             // a batch of which nothing is done
)

// proxy is before DynamoDB and lets plan decide each call.
type proxy struct {
	mu    sync.Mutex
	plan  func(operation string) fault
	calls map[string]int
}

func newProxy(t *testing.T, endpoint string) (*proxy, string) {
	t.Helper()
	p := &proxy{calls: map[string]int{}, plan: func(string) fault { return pass }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, endpoint)
	}))
	t.Cleanup(srv.Close)
	return p, srv.URL
}

func (p *proxy) set(plan func(operation string) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.calls = plan, map[string]int{}
}

func (p *proxy) made(operation string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[operation]
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request, endpoint string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	p.mu.Lock()
	p.calls[operation]++
	f := p.plan(operation)
	p.mu.Unlock()
	switch f {
	case throttle:
		refuse(w, operation, "ProvisionedThroughputExceededException", "ThrottlingError")
		return
	case conflict:
		refuse(w, operation, "TransactionConflictException", "TransactionConflict")
		return
	case inProgress:
		reply(w, 400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException","Message":"in progress"}`)
		return
	case internal:
		reply(w, 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"try again"}`)
		return
	case cut:
		panic(http.ErrAbortHandler)
	}
	if f == idle {
		var in batch
		_ = json.Unmarshal(body, &in)
		all, _ := json.Marshal(in["RequestItems"])
		reply(w, 200, string(leave(operation, []byte("{}"), all)))
		return
	}
	var held []byte
	if f == partial {
		body, held = halve(operation, body)
	}
	req, _ := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, endpoint, bytes.NewReader(body))
	req.Header = r.Header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	switch {
	case f == lostReply:
		panic(http.ErrAbortHandler)
	case f == torn:
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(answer[:len(answer)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case f == lateError:
		reply(w, 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"try again"}`)
	case held != nil:
		reply(w, res.StatusCode, string(leave(operation, answer, held)))
	default:
		reply(w, res.StatusCode, string(answer))
	}
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(body))))
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// refuse responds with an exception, or for a transaction sometimes with its reason for
// canceling, as both occur.
func refuse(w http.ResponseWriter, operation, exception, reason string) {
	if operation == "TransactWriteItems" && (reason == "TransactionConflict" || rand.IntN(2) == 0) {
		reply(w, 400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled",`+
			`"CancellationReasons":[{"Code":"`+reason+`","Message":"later"}]}`)
		return
	}
	reply(w, 400, `{"__type":"com.amazonaws.dynamodb.v20120810#`+exception+`","message":"later"}`)
}

type batch = map[string]map[string]json.RawMessage

// halve splits a batch request in one to send and the rest.
func halve(operation string, body []byte) (send, held []byte) {
	var in batch
	_ = json.Unmarshal(body, &in)
	later := map[string]json.RawMessage{}
	for table, raw := range in["RequestItems"] {
		if operation == "BatchWriteItem" {
			var writes []json.RawMessage
			_ = json.Unmarshal(raw, &writes)
			n := len(writes) / 2
			later[table], _ = json.Marshal(writes[n:])
			in["RequestItems"][table], _ = json.Marshal(writes[:n])
			if n == 0 {
				delete(in["RequestItems"], table)
			}
			continue
		}
		var get map[string]json.RawMessage
		var keys []json.RawMessage
		_ = json.Unmarshal(raw, &get)
		_ = json.Unmarshal(get["Keys"], &keys)
		n := (len(keys) + 1) / 2
		if n == len(keys) {
			return body, nil
		}
		get["Keys"], _ = json.Marshal(keys[n:])
		later[table], _ = json.Marshal(get)
		get["Keys"], _ = json.Marshal(keys[:n])
		in["RequestItems"][table], _ = json.Marshal(get)
	}
	if len(in["RequestItems"]) == 0 {
		return body, nil
	}
	send, _ = json.Marshal(in)
	held, _ = json.Marshal(later)
	return send, held
}

// leave adds the withheld items to the response.
func leave(operation string, answer, held []byte) []byte {
	var out map[string]json.RawMessage
	_ = json.Unmarshal(answer, &out)
	name := "UnprocessedItems"
	if operation == "BatchGetItem" {
		name = "UnprocessedKeys"
	}
	out[name] = held
	b, _ := json.Marshal(out)
	return b
}

// fast waits little between many attempts.
func fast(o *dynamo.Options) { o.Attempts, o.Backoff = 40, 50*time.Microsecond }

func TestContractUnderFaults(t *testing.T) {
	endpoint := dynamotest.Start(t)
	p, url := newProxy(t, endpoint)
	s := dynamotest.Open(t, url, fast)
	rng := rand.New(rand.NewPCG(1, 2))
	p.set(func(operation string) fault { // called under the proxy's lock
		if rng.IntN(4) > 0 {
			return pass
		}
		switch operation {
		case "PutItem", "UpdateItem", "DeleteItem":
			return []fault{throttle, conflict}[rng.IntN(2)]
		case "TransactWriteItems":
			return []fault{throttle, conflict, inProgress, internal, cut, lostReply, lateError}[rng.IntN(7)]
		case "BatchGetItem", "BatchWriteItem":
			return []fault{throttle, internal, cut, lostReply, partial, partial, partial}[rng.IntN(7)]
		}
		return []fault{throttle, internal, cut, lostReply}[rng.IntN(4)]
	})
	storetest.Run(t, func(*testing.T) store.Store { return s }, dynamotest.Deviations()...)
	p.set(func(string) fault { return pass })
}

// Each operation under one fault that does not end.
func TestFaultsThatDoNotEnd(t *testing.T) {
	endpoint := dynamotest.Start(t)
	p, url := newProxy(t, endpoint)
	const attempts = 3
	s := dynamotest.Open(t, url, func(o *dynamo.Options) { o.Attempts, o.Backoff = attempts, time.Microsecond })
	control, ctx := s.Table(store.Control), t.Context()
	key := func(name string) store.Key { return store.Scope{Org: "o"}.Partition().Key(name) }
	update := func(k store.Key) store.Update {
		return store.Update{Key: k, Add: []store.Increment{{Path: store.At("n"), By: 1}}}
	}
	operations := []struct {
		name, call string
		write      bool
		once       bool // a lost response must not lead to a repetition
		do         func(k store.Key) error
	}{
		{"get", "GetItem", false, false, func(k store.Key) error { _, _, err := control.Get(ctx, k, true); return err }},
		{"get many", "BatchGetItem", false, false, func(k store.Key) error { _, err := control.GetMany(ctx, []store.Key{k}); return err }},
		{"query", "Query", false, false, func(k store.Key) error {
			_, err := control.Query(ctx, store.Query{Partition: k.Partition()})
			return err
		}},
		{"put", "PutItem", true, false, func(k store.Key) error { return control.Put(ctx, store.Row{Key: k}) }},
		{"conditional put", "PutItem", true, true, func(k store.Key) error { return control.Put(ctx, store.Row{Key: k}, store.IfAbsent()) }},
		{"put many", "BatchWriteItem", true, false, func(k store.Key) error { return control.PutMany(ctx, []store.Row{{Key: k}}) }},
		{"update", "UpdateItem", true, true, func(k store.Key) error { _, _, err := control.Update(ctx, update(k)); return err }},
		{"delete", "DeleteItem", true, false, func(k store.Key) error { return control.Delete(ctx, k) }},
		{"conditional delete", "DeleteItem", true, true, func(k store.Key) error { return control.Delete(ctx, k, store.IfAbsent()) }},
		{"transact", "TransactWriteItems", true, false, func(k store.Key) error {
			u := update(k)
			return s.Transact(ctx, store.Action{Table: store.Control, Update: &u})
		}},
	}
	for _, op := range operations {
		for name, f := range map[string]fault{
			"throttle": throttle, "conflict": conflict, "internal": internal, "cut": cut, "lost reply": lostReply, "late error": lateError,
		} {
			t.Run(op.name+" "+name, func(t *testing.T) {
				k := key(op.name + name)
				p.set(func(string) fault { return f })
				err := op.do(k)
				calls := p.made(op.call)
				p.set(func(string) fault { return pass })

				want, wantCalls := store.ErrUncertain, attempts
				switch {
				case f == throttle:
					want = store.ErrThrottled
				case f == conflict:
					want = store.ErrContended
				case !op.write:
					want = nil
				case op.once:
					wantCalls = 1
				}
				if err == nil || want != nil && !errors.Is(err, want) || want == nil && errors.Is(err, store.ErrUncertain) {
					t.Errorf("error is %v, want %v", err, want)
				}
				if calls < wantCalls || wantCalls == 1 && calls > 1 {
					t.Errorf("%d calls, want %d", calls, wantCalls)
				}
				if op.name == "update" || op.name == "transact" {
					item, _, err := control.Get(ctx, k, true)
					if err != nil {
						t.Fatal(err)
					}
					done := int64(0)
					if f == lostReply || f == lateError {
						done = 1
					}
					if item.Int("n") != done {
						t.Errorf("done %d times, want %d", item.Int("n"), done)
					}
				}
			})
		}
	}
	t.Run("a lost reply, then throttling", func(t *testing.T) {
		n := 0
		p.set(func(string) fault {
			if n++; n == 1 {
				return lostReply
			}
			return throttle
		})
		defer p.set(func(string) fault { return pass })
		if err := control.Put(ctx, store.Row{Key: key("lost")}); !errors.Is(err, store.ErrUncertain) || n != attempts {
			t.Errorf("error is %v after %d calls", err, n)
		}
	})
	t.Run("a transaction whose reply is lost before a conflict", func(t *testing.T) {
		k, n := key("twice"), 0
		p.set(func(string) fault {
			n++
			return []fault{lostReply, conflict, pass}[n-1]
		})
		defer p.set(func(string) fault { return pass })
		u := update(k)
		if err := s.Transact(ctx, store.Action{Table: store.Control, Update: &u}); err != nil || n != 3 {
			t.Errorf("%v after %d calls", err, n)
		}
		p.set(func(string) fault { return pass })
		if item, _, err := control.Get(ctx, k, true); err != nil || item.Int("n") != 1 {
			t.Errorf("done %d times: %v", item.Int("n"), err)
		}
	})
	t.Run("a torn answer", func(t *testing.T) {
		k, n := key("torn"), 0
		tearFirst := func(string) fault {
			if n++; n == 1 {
				return torn
			}
			return pass
		}
		defer p.set(func(string) fault { return pass })
		row := store.Row{Key: k, Item: store.Item{"n": int64(7)}}
		p.set(tearFirst)
		if err := control.Put(ctx, row); err != nil || n != 2 {
			t.Errorf("a put: %v after %d calls", err, n)
		}
		n = 0
		p.set(tearFirst) // a rejection is certain, so the call is repeated
		err := control.Put(ctx, row, store.IfAbsent())
		if c, ok := store.AsCondition(err); !ok || c.Current.Int("n") != 7 || n != 2 {
			t.Errorf("a refused put: %v after %d calls", err, n)
		}
		n = 0
		p.set(tearFirst)
		if _, _, err := control.Update(ctx, update(k)); !errors.Is(err, store.ErrUncertain) || n != 1 {
			t.Errorf("an update: %v after %d calls", err, n)
		}
	})
	var rows []store.Row
	var keys []store.Key
	for i := range 60 {
		keys = append(keys, key(fmt.Sprint("batch", i)))
		rows = append(rows, store.Row{Key: keys[i]})
	}
	t.Run("batches that are done by halves", func(t *testing.T) {
		p.set(func(string) fault { return partial })
		defer p.set(func(string) fault { return pass })
		if err := control.PutMany(ctx, rows); err != nil {
			t.Error(err)
		}
		if found, err := control.GetMany(ctx, keys); err != nil || len(found) != len(rows) {
			t.Errorf("found %d rows: %v", len(found), err)
		}
	})
	t.Run("batches of which nothing is done", func(t *testing.T) {
		p.set(func(string) fault { return idle })
		defer p.set(func(string) fault { return pass })
		if err := control.PutMany(ctx, rows); !errors.Is(err, store.ErrThrottled) || p.made("BatchWriteItem") != attempts {
			t.Errorf("error is %v after %d calls", err, p.made("BatchWriteItem"))
		}
		if _, err := control.GetMany(ctx, keys); !errors.Is(err, store.ErrThrottled) || p.made("BatchGetItem") != attempts {
			t.Errorf("error is %v after %d calls", err, p.made("BatchGetItem"))
		}
	})
}

func TestTheContextEndsTheWait(t *testing.T) {
	calls := make(chan struct{}, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls <- struct{}{}
		refuse(w, "", "ThrottlingException", "")
	}))
	t.Cleanup(srv.Close)
	s, err := dynamo.New(dynamo.Options{Config: dynamotest.Config(srv.URL), Backoff: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-calls
		cancel()
	}()
	_, _, err = s.Table(store.Control).Get(ctx, store.Credential("KEY", "aa"), true)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestNobodyThereIsNotUncertain(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close() // the port rejects connections now
	s, err := dynamo.New(dynamo.Options{Config: dynamotest.Config(srv.URL), Attempts: 2, Backoff: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Table(store.Control).Put(t.Context(), store.Row{Key: store.Credential("KEY", "aa")}, store.IfAbsent())
	if err == nil || errors.Is(err, store.ErrUncertain) {
		t.Errorf("error is %v", err)
	}
}

func TestMissingTablesAndRightsAreDefinite(t *testing.T) {
	for _, code := range []string{"ResourceNotFoundException", "AccessDeniedException", "UnrecognizedClientException"} {
		calls := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls++
			reply(w, 400, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"no"}`)
		}))
		s, err := dynamo.New(dynamo.Options{Config: dynamotest.Config(srv.URL), Backoff: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Table(store.Control).Delete(t.Context(), store.Credential("KEY", "aa"))
		if err == nil || !strings.Contains(err.Error(), code) || errors.Is(err, store.ErrUncertain) || calls != 1 {
			t.Errorf("%s: error is %v after %d calls", code, err, calls)
		}
		srv.Close()
	}
}
