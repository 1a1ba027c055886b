package measure

import (
	"time"

	"gateway/shared/pricing"
)

// rates are prices that were looked up less than ratesAge ago.
type rates map[Key]rate

type rate struct {
	price pricing.Price
	ok    bool
	until int64
}

const (
	ratesAge = time.Second
	maxRates = 1000
)

// Price returns the price of a target at a time, looked up at most once a second. Choices may
// lag a price change by that much; charges do not.
func (r *Room) Price(k Key, c Class, at time.Time, find func() (pricing.Price, bool)) (pricing.Price, bool) {
	k = k*Classes + Key(c%Classes)
	now := at.UnixNano()
	r.mu.Lock()
	p, kept := r.rates[k]
	r.mu.Unlock()
	if kept && now < p.until && now >= p.until-int64(ratesAge) {
		return p.price, p.ok
	}
	p.price, p.ok = find()
	p.until = now + int64(ratesAge)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rates == nil || len(r.rates) >= maxRates {
		r.rates = make(rates)
	}
	r.rates[k] = p
	return p.price, p.ok
}
