// Package running is the cost of running the gateway on AWS: the one table of list prices,
// from which the prices in the README are made, and the sum of what a request used. Units
// that a call does not report are counted by rules: a read of the tables is one unit for
// each 4 KB of its response, a write one for each KB that was sent, a transaction twice as
// much.
package running

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/pricing"
)

//go:embed prices.json
var list []byte

// picoDollars is an amount of money: 1e-12 US dollars. The price of one unit is always an
// integer number of them.
type picoDollars int64

var (
	read   sync.Once
	prices map[string]picoDollars // price of one unit, by its name in the list
)

// table are the prices. Programs that do not use them do not link the code that reads them.
func table() map[string]picoDollars {
	read.Do(func() {
		var all struct {
			Prices map[string]struct {
				USD float64
				Per string
			}
		}
		if err := json.Unmarshal(list, &all); err != nil {
			panic(fmt.Errorf("running: prices: %w", err)) // cannot happen: it is part of the program
		}
		prices = make(map[string]picoDollars, len(all.Prices))
		for name, p := range all.Prices {
			if strings.HasPrefix(p.Per, "1M") {
				prices[name] = picoDollars(math.Round(p.USD * 1e6))
			}
		}
	})
	return prices
}

// Calls counts the calls of AWS by a process. It is safe for concurrent use.
type Calls struct{ reads, writes, queue, puts, gets, keys atomic.Int64 }

// Process counts the calls of this process.
var Process Calls

// Count adds one call: its service and action (for S3 the HTTP method), with the bytes that
// were sent and received.
func (c *Calls) Count(service, action string, sent, received int64) {
	switch service {
	case "DynamoDB":
		c.table(action, sent, received)
	case "SQS":
		c.queue.Add(max(1, ceil(sent, 64<<10)))
	case "KMS":
		c.keys.Add(1)
	case "S3":
		switch action {
		case "DELETE": // free of charge
		case "GET", "HEAD":
			c.gets.Add(1)
		default:
			c.puts.Add(1)
		}
	}
}

func (c *Calls) table(action string, sent, received int64) {
	switch action {
	case "GetItem", "BatchGetItem", "Query", "TransactGetItems":
		c.reads.Add(max(1, ceil(received, 4<<10)))
	case "TransactWriteItems":
		c.writes.Add(max(2, 2*ceil(sent, 1<<10)))
	default:
		c.writes.Add(max(1, ceil(sent, 1<<10)))
	}
}

func ceil(n, unit int64) int64 { return (n + unit - 1) / unit }

// Used are the numbers of Calls at one time.
type Used struct{ Reads, Writes, Queue, Puts, Gets, Keys int64 }

// Now returns the counts so far.
func (c *Calls) Now() Used {
	return Used{c.reads.Load(), c.writes.Load(), c.queue.Load(), c.puts.Load(), c.gets.Load(), c.keys.Load()}
}

// Since returns the usage since an earlier time.
func (u Used) Since(o Used) Used {
	return Used{u.Reads - o.Reads, u.Writes - o.Writes, u.Queue - o.Queue, u.Puts - o.Puts, u.Gets - o.Gets, u.Keys - o.Keys}
}

// Event is the cost of passing on a record: a message that is sent alone and received with
// nine others.
var Event = Used{Queue: 1}

// Request returns the cost of a request that a function with so many MB served in a time: the
// ingress, its calls, its record's message, and its time in milliseconds, rounded up.
func Request(u Used, memory int64, duration time.Duration) pricing.NanoDollars {
	p := table()
	sum := p["edge.request"] + p["api.request"] + p["lambda.request"]
	for name, n := range map[string]int64{
		"dynamodb.read": u.Reads, "dynamodb.write": u.Writes, "sqs.request": u.Queue + Event.Queue, "s3.put": u.Puts, "s3.get": u.Gets, "kms.request": u.Keys,
	} {
		sum += p[name] * picoDollars(n)
	}
	ms := ceil(int64(max(duration, 0)), int64(time.Millisecond))
	sum += p["lambda.time"] * picoDollars(ms*memory) / (1000 * 1024)
	return pricing.NanoDollars((sum + 500) / 1000)
}
