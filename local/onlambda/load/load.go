// Package load drives the binary of the function chat in many environments at a time on one
// DynamoDB, through the edge and the API of onlambda. It reports whether limits were exact
// while the store throttled, whether a record was lost, how many environments had to start, and
// what a request costs.
package load

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/local/mockprovider"
	"gateway/local/onlambda"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/testkit/awsemulator"
	"gateway/shared/testkit/awstest/rights"
)

// Options of a run. The context limits its time.
type Options struct {
	Root         string // the source tree
	Dir          string // folder of the functions' binaries; those that are missing are built
	Environments int    // number of environments of the function, and of clients
	Requests     int    // requests of each part; in the first part the limit lets half of them pass
	Delay        time.Duration
	// ThrottleEvery is after how many calls DynamoDB throttles one; 0: never.
	ThrottleEvery int
	Log           io.Writer
}

// Report is the result of a run.
type Report struct {
	Requests              int         // of both parts
	Rated, Passed         int         // requests that the rate limit let pass, and how many it should
	Limited               int         // requests that got 429
	Paid, Unpaid          int         // requests that the budget let pass, and those that got 412
	Spent, Limit, Billed  int64       // nano-dollars: what the budget's key spent, its limit, and the provider's own bill
	Others                map[int]int // unexpected answers by status
	Records               int         // events in the queue
	ColdStarts            int
	Throttled             int            // calls that DynamoDB throttled
	Actions               map[string]int // calls of the function by action, as IAM names them
	Refused               []string       // calls that its role did not allow
	FunctionTime, Elapsed time.Duration  // sum over the requests; time of the run
	Memory                int            // MB of the function
}

// Err is the failure; nil if there was none.
func (r *Report) Err() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(r.Rated == r.Passed, "%d requests passed a limit of %d", r.Rated, r.Passed)
	check(len(r.Others) == 0, "answers of other statuses: %v", r.Others)
	check(r.Records == r.Requests, "%d records of %d requests", r.Records, r.Requests)
	check(r.Spent == r.Billed, "recorded are %d nano-dollars, the provider billed %d", r.Spent, r.Billed)
	check(r.Spent <= r.Limit, "%d nano-dollars were spent of %d", r.Spent, r.Limit)
	check(r.Paid > 0 && r.Unpaid > 0, "%d requests were paid and %d refused: the budget was not met", r.Paid, r.Unpaid)
	check(len(r.Refused) == 0, "the role of the function refused: %q", r.Refused)
	return errors.Join(errs...)
}

// run is a run that is going on.
type run struct {
	o        Options
	services *awsemulator.Services
	recorder *rights.Recorder
	core     *onaws.Installation
	mock     *mockprovider.Server
	shim     *onlambda.Platform
	front    *httptest.Server
	client   *http.Client

	calls, throttled atomic.Int64
	loading          atomic.Bool // DynamoDB throttles only while this is true
	closers          []func() error
}

// Run makes an installation, puts load on it and removes it. It sets variables of this
// process.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &run{o: o}
	defer func() {
		slices.Reverse(r.closers)
		for _, c := range r.closers {
			err = errors.Join(err, c())
		}
	}()
	if err := r.install(ctx); err != nil {
		return nil, err
	}
	out := &Report{Others: map[int]int{}, Memory: awsemulator.Described().Functions[function].Memory, Passed: o.Requests / 2}
	begun := time.Now()
	if err := errors.Join(r.rates(ctx, out), r.money(ctx, out)); err != nil {
		return nil, err
	}
	out.Elapsed = time.Since(begun)
	out.ColdStarts, out.Throttled = r.shim.Started(ctx, function), int(r.throttled.Load())
	out.Actions, out.Refused = r.recorder.Actions(function), r.recorder.Denied()
	// A request's usage event is sent after the last byte of the response: closing waits for
	// it.
	if err := r.closeShim(); err != nil {
		return nil, err
	}
	out.Records = len(r.services.SQS.Messages("gateway-usage"))
	return out, ctx.Err()
}

// function is the function under load.
const function = "chat"

const adminKey = "admin-key-of-the-load"

// install starts the emulators with the recorder and the throttle as proxies, the mock
// provider, and the function with its edge.
func (r *run) install(ctx context.Context) (err error) {
	if r.services, err = awsemulator.Start(ctx, r.o.Root); err != nil {
		return err
	}
	r.closers = append(r.closers, func() error { r.services.Close(); return nil })
	endpoints := r.services.Endpoints()
	throttle := httptest.NewServer(r.throttle(endpoints["AWS_ENDPOINT_URL_DYNAMODB"]))
	r.closers = append(r.closers, func() error { throttle.CloseClientConnections(); throttle.Close(); return nil })
	endpoints["AWS_ENDPOINT_URL_DYNAMODB"] = throttle.URL
	policies := map[string][]awsemulator.Statement{function: awsemulator.Described().Functions[function].Policy}
	var led map[string]string
	if r.recorder, led, err = rights.Record(endpoints, policies, "arn:aws:kms:us-east-1:123456789012:key/SealKey"); err != nil {
		return err
	}
	r.closers = append(r.closers, func() error { r.recorder.Close(); return nil })
	r.mock = mockprovider.New(mockprovider.Options{})
	if _, err = r.mock.Listen("127.0.0.1:0"); err != nil {
		return err
	}
	r.closers = append(r.closers, r.mock.Close)
	provider := strings.TrimPrefix(r.mock.URL(), "http://")
	if err = awsemulator.Set(led, r.services.Named(), awsemulator.Identity("load"), map[string]string{onaws.EnvTrustedHosts: provider}); err != nil {
		return err
	}
	if r.core, err = onaws.Open(ctx, onaws.Bucket, onaws.AuditQueue, onaws.UsageQueue, onaws.Keys); err != nil {
		return err
	}
	if _, err = r.core.Bootstrap(ctx, app.First{AdminKey: adminKey, WorkspaceKey: "workspace-key-of-the-load", MockURL: r.mock.URL() + "/v1", AllowInline: true}); err != nil {
		return err
	}
	return r.start(led, provider)
}

// start serves the functions at one address. Each has a separate access key and role.
func (r *run) start(led map[string]string, provider string) error {
	secret := rand.Text()
	var env []string
	for _, vars := range []map[string]string{led, r.services.Named(), awsemulator.Identity(function), {onaws.EnvTrustedHosts: provider, onaws.EnvOriginSecrets: secret}} {
		for name, v := range vars {
			env = append(env, name+"="+v)
		}
	}
	var building sync.Mutex
	r.shim = onlambda.New(onlambda.Options{
		Dir: r.o.Dir, Env: env, Log: r.o.Log, Secret: secret, Max: r.o.Environments,
		EnvOf: func(name string) []string { return []string{"AWS_ACCESS_KEY_ID=" + name} },
		Build: func(ctx context.Context, name string) error {
			building.Lock()
			defer building.Unlock()
			return onlambda.Build(ctx, r.o.Root, r.o.Dir, name)
		},
	})
	r.closers = append(r.closers, r.closeShim)
	r.front = httptest.NewServer(r.shim)
	r.closers = append(r.closers, func() error { r.front.Close(); return nil })
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: r.o.Environments}}
	return nil
}

func (r *run) closeShim() error {
	if r.shim == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shim := r.shim
	r.shim = nil
	return shim.Close(ctx)
}

// Dir is the folder below a source tree where binaries for tests and tools are built. The
// path is absolute, because the build runs in another folder.
func Dir(root string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "functions-"+runtime.GOOS+"-"+runtime.GOARCH)
	return dir, os.MkdirAll(dir, 0o755)
}

// Prices are USD by their names in shared/pricing/running/prices.json.
type Prices map[string]struct{ USD float64 }

// ReadPrices reads the price table of a source tree; os.ErrNotExist without one.
func ReadPrices(root string) (Prices, error) {
	raw, err := os.ReadFile(filepath.Join(root, "shared", "pricing", "running", "prices.json"))
	if err != nil {
		return nil, err
	}
	var table struct{ Prices Prices }
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, err
	}
	return table.Prices, nil
}

// uses is how much of each priced thing a request used, by the names of the prices.
func (r *Report) uses() map[string]float64 {
	n := float64(r.Requests)
	out := map[string]float64{
		"lambda.request": 1, "api.request": 1, "edge.request": 1,
		"lambda.time": r.FunctionTime.Seconds() * float64(r.Memory) / 1024 / n,
	}
	for action, times := range r.Actions {
		service, name, _ := strings.Cut(action, ":")
		price := map[string]string{"sqs": "sqs.request", "kms": "kms.request"}[service]
		switch {
		case service == "dynamodb" && (strings.HasSuffix(name, "GetItem") || name == "Query"):
			price = "dynamodb.read"
		case service == "dynamodb":
			price = "dynamodb.write"
		case name == "PutObject":
			price = "s3.put"
		case service == "s3":
			price = "s3.get"
		}
		out[price] += float64(times) / n
	}
	return out
}

// PerMillion is the cost of a million such requests in USD: the function, the edge, the API,
// and the calls of the function, but not the worker. The time is the one that clients measured,
// on a machine that they shared with the function.
func (r *Report) PerMillion(p Prices) (sum float64, err error) {
	for name, n := range r.uses() {
		price, ok := p[name]
		if !ok {
			return 0, fmt.Errorf("load: %s has no price", name)
		}
		sum += n * price.USD // prices are for a million
	}
	return sum, nil
}

// Print writes a report.
func (r *Report) Print(w io.Writer, p Prices) error {
	n := float64(r.Requests)
	_, err := fmt.Fprintf(w, `%d requests in %s, %.1f a second
rate limit      %d of %d passed, %d refused with 429
budget          %d paid, %d rejected with 412; recorded %d, billed %d, limit %d nano-dollars
records         %d of %d
cold starts     %d
throttled       %d calls of DynamoDB
`, r.Requests, r.Elapsed.Round(time.Millisecond), n/r.Elapsed.Seconds(), r.Rated, r.Passed, r.Limited, r.Paid, r.Unpaid, r.Spent, r.Billed, r.Limit, r.Records, r.Requests, r.ColdStarts, r.Throttled)
	if err != nil {
		return err
	}
	for _, name := range []string{"lambda.time", "dynamodb.read", "dynamodb.write", "sqs.request", "kms.request", "s3.put"} {
		if _, err := fmt.Fprintf(w, "%-15s %.3f a request\n", name, r.uses()[name]); err != nil {
			return err
		}
	}
	if p == nil {
		_, err = fmt.Fprintln(w, "cost            shared/pricing/running/prices.json is not there")
		return err
	}
	usd, err := r.PerMillion(p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "cost            %.2f USD a million requests of this mix, each %s in the function\n", usd, (r.FunctionTime / time.Duration(r.Requests)).Round(time.Millisecond))
	return err
}
