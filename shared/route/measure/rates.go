package measure

import (
	"time"

	"gateway/shared/pricing"
)

// rates are prices that were looked up less than ratesAge ago. They are never changed, and pointers
// because a price is too large to be copied for each target of each request.
type rates map[Key]*rate

type rate struct {
	price pricing.Price
	ok    bool
	until int64
}

const (
	ratesAge = time.Second
	maxRates = 1000
)

// Prices sets the cost of each candidate, for a request at a time that uses used. find returns
// the price of the target of a candidate; its answer is used for a second. Choices may lag a
// price change by that much; charges do not.
func (r *Workspace) Prices(list []Candidate, c Class, at time.Time, used *pricing.Usage, find func(i int) (pricing.Price, bool)) {
	now := at.UnixNano()
	var room [24]int
	missing := room[:0]
	r.mu.Lock()
	for i := range list {
		p, kept := r.rates[list[i].rateKey(c)]
		if !kept || now >= p.until || now < p.until-int64(ratesAge) {
			missing = append(missing, i)
			continue
		}
		list[i].Cost, list[i].Priced = p.price.Cost(*used), p.ok
	}
	r.mu.Unlock()
	for _, i := range missing {
		p := &rate{until: now + int64(ratesAge)}
		p.price, p.ok = find(i)
		list[i].Cost, list[i].Priced = p.price.Cost(*used), p.ok
		r.keepRate(list[i].rateKey(c), p)
	}
}

// rateKey is the key of a candidate's price for a class of requests.
func (c *Candidate) rateKey(class Class) Key { return c.Key*Classes + Key(class%Classes) }

func (r *Workspace) keepRate(k Key, p *rate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rates == nil || len(r.rates) >= maxRates {
		r.rates = make(rates)
	}
	r.rates[k] = p
}
