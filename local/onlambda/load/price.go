package load

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
budget          %d paid, %d refused with 412; books %d, bill %d, limit %d nano-dollars
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
