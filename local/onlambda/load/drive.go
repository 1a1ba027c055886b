package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// throttle is a proxy of DynamoDB. It answers one call in so many with the error of an
// overloaded partition.
func (r *run) throttle(endpoint string) http.Handler {
	to, err := url.Parse(endpoint)
	if err != nil {
		panic(err) // it is the address of a server that this process started
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if n := r.calls.Add(1); r.o.ThrottleEvery == 0 || !r.loading.Load() || n%int64(r.o.ThrottleEvery) != 0 {
			proxy.ServeHTTP(w, req)
			return
		}
		r.throttled.Add(1)
		_, _ = io.Copy(io.Discard, req.Body) // the client may be gone
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"as asked"}`)
	})
}

// drive sends the requests with a key; each client sends one at a time and requests a response
// of so many words. drive counts the responses by status.
func (r *run) drive(ctx context.Context, key string, words int, elapsed *atomic.Int64) (map[int]int, error) {
	r.loading.Store(true)
	defer r.loading.Store(false)
	body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"mock: delay=%s chunks=%d"}]}`, 2*words, r.o.Delay, words)
	left := atomic.Int64{}
	left.Store(int64(r.o.Requests))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	statuses := map[int]int{}
	for range r.o.Environments {
		wg.Go(func() {
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				begun := time.Now()
				status, _, err := r.send(ctx, http.MethodPost, "/chat/completions", key, body)
				elapsed.Add(int64(time.Since(begun)))
				mu.Lock()
				statuses[status]++
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return statuses, errors.Join(errs...)
}

func (r *run) send(ctx context.Context, method, path, key, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.front.URL+"/v1"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for name, v := range map[string]string{"x-gateway-api-key": key, "x-gateway-provider": "@mock", "content-type": "application/json"} {
		req.Header.Set(name, v)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, bytes.TrimSpace(answer), err
}

// newKey makes a key with limits and returns its id and its value.
func (r *run) newKey(ctx context.Context, limits string) (id, key string, err error) {
	status, answer, err := r.send(ctx, http.MethodPost, "/api-keys/workspace/service", adminKey, `{"name":"load","workspace_id":"default","scopes":["completions.write"],`+limits+`}`)
	if err != nil || status != http.StatusOK {
		return "", "", fmt.Errorf("load: the key: %d %s: %w", status, answer, err)
	}
	var made struct{ ID, Key string }
	err = json.Unmarshal(answer, &made)
	return made.ID, made.Key, err
}

// rates sends more requests with a key than its limit of requests a day.
func (r *run) rates(ctx context.Context, out *Report) error {
	_, key, err := r.newKey(ctx, fmt.Sprintf(`"rate_limits":[{"type":"requests","unit":"rpd","value":%d}]`, out.Passed))
	if err != nil {
		return err
	}
	statuses, err := r.counted(ctx, key, 10, out)
	out.Rated, out.Limited = statuses[http.StatusOK], statuses[http.StatusTooManyRequests]
	out.others(statuses, http.StatusOK, http.StatusTooManyRequests)
	return err
}

func (r *run) counted(ctx context.Context, key string, words int, out *Report) (map[int]int, error) {
	var elapsed atomic.Int64
	statuses, err := r.drive(ctx, key, words, &elapsed)
	out.FunctionTime += time.Duration(elapsed.Load())
	for _, n := range statuses {
		out.Requests += n
	}
	return statuses, err
}

// others counts the statuses that a part does not expect.
func (out *Report) others(statuses map[int]int, expected ...int) {
	for status, n := range statuses {
		wanted := false
		for _, e := range expected {
			wanted = wanted || e == status
		}
		if !wanted {
			out.Others[status] += n
		}
	}
}

// The budget is a dollar; each response has so many words that all requests together would
// cost about three.
const (
	dollars      = 1
	wordsOfThree = 300_000
)

// money sends requests with a key that has a smaller budget than they cost.
func (r *run) money(ctx context.Context, out *Report) error {
	id, key, err := r.newKey(ctx, fmt.Sprintf(`"usage_limits":{"type":"cost","credit_limit":%d}`, dollars))
	if err != nil {
		return err
	}
	before := r.mock.Bill().Total.NanoDollars
	statuses, err := r.counted(ctx, key, max(wordsOfThree/r.o.Requests, 1), out)
	if err != nil {
		return err
	}
	out.Paid, out.Unpaid = statuses[http.StatusOK], statuses[http.StatusPreconditionFailed]
	out.others(statuses, http.StatusOK, http.StatusPreconditionFailed)
	out.Limit, out.Billed = dollars*1e9, r.mock.Bill().Total.NanoDollars-before
	// The last requests settle after their last byte.
	for {
		if out.Spent, err = r.spent(ctx, id); err != nil || out.Spent == out.Billed {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // the report shows the difference
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// spent reads how much the books say a key has spent, in nano-dollars.
func (r *run) spent(ctx context.Context, id string) (int64, error) {
	status, answer, err := r.send(ctx, http.MethodGet, "/api-keys/"+id, adminKey, "")
	if err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("load: the key: %d %s: %w", status, answer, err)
	}
	var key struct {
		Limits struct {
			Usage float64 `json:"current_usage"`
		} `json:"usage_limits"`
	}
	err = json.Unmarshal(answer, &key)
	return int64(math.Round(key.Limits.Usage * 1e9)), err
}
