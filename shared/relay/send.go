package relay

import (
	"io"
	"net/http"
	"time"

	"gateway/shared/egress"
)

// head sends the status line once.
func (c *call) head(status int) {
	if c.headSent {
		return
	}
	c.headSent, c.status = true, status
	c.w.WriteHeader(status)
}

// write sends bytes; when the client has gone it counts on without sending.
func (c *call) write(p []byte) {
	if len(p) == 0 || c.gone {
		return
	}
	if c.firstByte == 0 {
		c.firstByte = c.since()
	}
	if _, err := c.w.Write(p); err != nil {
		c.clientGone()
	}
}

func (c *call) flush() {
	if c.gone {
		return
	}
	if f, ok := c.w.(http.Flusher); ok {
		f.Flush()
	}
}

// flushWhenWaiting gathers what is written from here on while the provider's bytes
// are there, where that can be told, and flushes it before they are waited for: a
// stream that comes fast goes out in few pieces, one that comes slowly event by event.
func (c *call) flushWhenWaiting(body io.Reader) {
	c.gathers = egress.BeforeWaiting(body, c.flushWritten)
}

// flushSoon flushes what was written, at once or before the next wait.
func (c *call) flushSoon() {
	if c.written = true; !c.gathers {
		c.flushWritten()
	}
}

// flushWritten flushes what flushSoon left. The time that takes is not the
// provider's.
func (c *call) flushWritten() {
	if !c.written {
		return
	}
	c.written = false
	if !c.gathers {
		c.flush()
		return
	}
	t := c.Now()
	c.flush()
	c.waited -= c.Now().Sub(t)
}

// clientGone lets the provider's answer be read on for a while, so that what it
// costs is known, and then cancels it.
func (c *call) clientGone() {
	if c.gone {
		return
	}
	c.gone = true
	drain := time.AfterFunc(c.DrainTime, c.stop)
	c.afterwards = append(c.afterwards, func() { drain.Stop() })
}
