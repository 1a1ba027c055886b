package realtime

import "sync"

// Outcome is the guardrail outcome of a response, for its record.
type Outcome struct{ Denied, Failed bool }

// outcomes are those of responses without a record yet. The zero value has none.
type outcomes struct {
	mu  sync.Mutex
	all map[string]Outcome // by response
}

// note stores the outcome of a response. Above the limit, unread outcomes are dropped.
func (o *outcomes) note(response string, is Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for some := range o.all {
		if len(o.all) < maxOpen {
			break
		}
		delete(o.all, some)
	}
	if o.all == nil {
		o.all = make(map[string]Outcome)
	}
	o.all[response] = is
}

// take returns the outcome of a response, once.
func (o *outcomes) take(response string) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	is := o.all[response]
	delete(o.all, response)
	return is
}
