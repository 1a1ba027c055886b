package spoken

import "sync"

// Outcome is what guardrails said of a response, for its record.
type Outcome struct{ Denied, Failed bool }

// outcomes are those of responses whose records are not made yet. The zero value has none.
type outcomes struct {
	mu  sync.Mutex
	all map[string]Outcome // by response
}

// note keeps what was said of a response. Of too many, some are dropped for which nobody
// has asked.
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

// take gives what was said of a response, once.
func (o *outcomes) take(response string) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	is := o.all[response]
	delete(o.all, response)
	return is
}
