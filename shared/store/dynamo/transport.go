package dynamo

import (
	"net/http"
	"time"
)

// tuneTransport drops connections before DynamoDB does: a request sent on a
// connection that was just closed is an answer lost.
func tuneTransport(t *http.Transport) {
	t.MaxIdleConnsPerHost = 64
	t.IdleConnTimeout = 20 * time.Second
}
