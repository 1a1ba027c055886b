package load

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/app/onaws"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/awsemulator"
)

const root = "../../.."

// In a row: it sets the environment, and takes all the machine has.
func TestLimitsHoldInFiftyEnvironments(t *testing.T) {
	if testing.Short() {
		t.Skip("-short tests the embedded store alone")
	}
	if _, err := os.Stat(root + "/" + emulator.Binary); err != nil && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON AWS: %v", emulator.ErrMissing)
	}
	for _, vars := range []map[string]string{awsemulator.Identity(""), {
		"AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_ENDPOINT_URL_SQS": "", "AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL_KMS": "",
		onaws.EnvTablePrefix: "", onaws.EnvBucket: "", onaws.EnvKey: "", onaws.EnvAuditQueue: "", onaws.EnvUsageQueue: "", onaws.EnvRunQueue: "", onaws.EnvTrustedHosts: "",
	}} {
		for name := range vars {
			t.Setenv(name, "") // as it was when the test ends
		}
	}
	dir, err := Dir(root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	logged := new(log)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the functions said:\n%s", logged)
		}
	})
	report, err := Run(ctx, Options{Root: root, Dir: dir, Environments: 50, Requests: 100, Delay: 300 * time.Millisecond, ThrottleEvery: 25, Log: logged})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.Print(&out, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", out.String())
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.Requests != 200 || report.Throttled == 0 || report.ColdStarts < 10 || report.ColdStarts > 50 {
		t.Errorf("%d requests, %d throttled, %d cold starts", report.Requests, report.Throttled, report.ColdStarts)
	}
}

// log keeps what is written by many.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is the beginning of what was written.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	return text[:min(len(text), 20_000)]
}

// What did not hold is said, each automatically.
func TestWrong(t *testing.T) {
	t.Parallel()
	good := Report{Requests: 20, Rated: 5, Passed: 5, Limited: 5, Paid: 4, Unpaid: 6, Spent: 900, Billed: 900, Limit: 1000, Records: 20}
	if err := good.Err(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Report){
		"limit":    func(r *Report) { r.Rated++ },
		"status":   func(r *Report) { r.Others = map[int]int{503: 1} },
		"record":   func(r *Report) { r.Records-- },
		"books":    func(r *Report) { r.Spent-- },
		"budget":   func(r *Report) { r.Spent, r.Billed = 1001, 1001 },
		"no limit": func(r *Report) { r.Unpaid = 0 },
		"role":     func(r *Report) { r.Refused = []string{"chat may not"} },
	} {
		bad := good
		change(&bad)
		if bad.Err() == nil {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
}

func TestPerMillion(t *testing.T) {
	t.Parallel()
	r := Report{Requests: 10, Memory: 256, FunctionTime: 20 * time.Second, Actions: map[string]int{
		"dynamodb:GetItem": 10, "dynamodb:Query": 10, "dynamodb:UpdateItem": 20, "sqs:SendMessage": 10, "kms:Decrypt": 1, "s3:PutObject": 1, "s3:GetObject": 1,
	}}
	prices := Prices{}
	for name, usd := range map[string]float64{
		"lambda.request": 1, "lambda.time": 10, "api.request": 3, "edge.request": 1, "dynamodb.read": 0.5, "dynamodb.write": 1, "sqs.request": 1, "kms.request": 10, "s3.put": 10, "s3.get": 10,
	} {
		prices[name] = struct{ USD float64 }{usd}
	}
	// 1 + half a GB-second at 10 + 3 + 1 + two reads at a half + two writes + a message + three tenths at 10.
	if got, err := r.PerMillion(prices); err != nil || got < 16.999 || got > 17.001 {
		t.Errorf("%v, %v", got, err)
	}
	delete(prices, "kms.request")
	if _, err := r.PerMillion(prices); err == nil || !strings.Contains(err.Error(), "kms.request") {
		t.Errorf("%v", err)
	}
	if _, err := ReadPrices(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
