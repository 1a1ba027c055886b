package running

import (
	"testing"
	"time"

	"gateway/shared/pricing"
)

// Every price that a request is summed from stands in the table.
func TestTheTableHasWhatRequestsUse(t *testing.T) {
	for _, name := range []string{"edge.request", "api.request", "lambda.request", "lambda.time", "dynamodb.read", "dynamodb.write", "sqs.request", "s3.put", "s3.get", "kms.request"} {
		if table()[name] <= 0 {
			t.Errorf("%s has no price", name)
		}
	}
}

func TestCostOfARequest(t *testing.T) {
	// 1 + 3.50 + 0.20 USD a million for the way in, 0.40 for the event.
	const least = 5_100
	for name, c := range map[string]struct {
		used     Used
		memory   int64
		duration time.Duration
		want     pricing.NanoDollars
	}{
		"nothing":              {Used{}, 192, 0, least},
		"a second of a GB":     {Used{}, 1024, time.Second, least + 13_333},
		"a begun millisecond":  {Used{}, 1024, time.Nanosecond, least + 13},
		"time that ran back":   {Used{}, 1024, -time.Second, least},
		"reads and writes":     {Used{Reads: 2, Writes: 3}, 192, 0, least + 2*125 + 3*625},
		"messages, files, key": {Used{Queue: 1, Puts: 1, Gets: 2, Keys: 1}, 192, 0, least + 400 + 5_000 + 800 + 3_000},
	} {
		if got := Request(c.used, c.memory, c.duration); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestCallsAreCountedInUnits(t *testing.T) {
	var c Calls
	before := c.Now()
	for _, call := range []struct {
		service, action string
		sent, received  int64
	}{
		{"DynamoDB", "GetItem", 200, 300}, {"DynamoDB", "Query", 200, 4097}, {"DynamoDB", "UpdateItem", 900, 0}, {"DynamoDB", "PutItem", 1025, 0}, {"DynamoDB", "TransactWriteItems", 100, 0},
		{"DynamoDB", "GetItem", 0, -1}, {"SQS", "SendMessage", 65537, 0}, {"KMS", "Decrypt", 10, 10}, {"S3", "GET", 0, 5}, {"S3", "HEAD", 0, 0}, {"S3", "PUT", 5, 0}, {"S3", "DELETE", 0, 0}, {"STS", "AssumeRole", 0, 0},
	} {
		c.Count(call.service, call.action, call.sent, call.received)
	}
	want := Used{Reads: 4, Writes: 5, Queue: 2, Puts: 1, Gets: 2, Keys: 1}
	if got := c.Now().Since(before); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
