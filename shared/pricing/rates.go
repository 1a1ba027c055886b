package pricing

import (
	"fmt"
	"strings"
)

// rates is one set of prices, as declared, in femto-dollars per unit.
type rates struct {
	rate     [NumClasses]int64
	has      uint64 // declared classes
	minute   int64  // per 60 seconds
	byMinute bool
	perImage bool
	tables   []choice // prices that depend on the request
	line     string   // its name in records: provider/model and the section
	defaults Defaults
}

// choice is the price of a class for one quality, size or context.
type choice struct {
	class Class
	key   string // quality:size for images, WxH for seconds, low|medium|high, tier
	price int64
}

// Defaults are the counts to assume when a request gives none: seconds of a video, samples,
// diffusion steps. 0: there is no default.
type Defaults struct{ Seconds, Samples, Steps int64 }

// variant is a set of rates for a mode, regions and a prompt size.
type variant struct {
	mode    string
	regions string // comma list; empty: any
	over    int64  // applies when the prompt has more tokens than this; 0: always
	when    period // the zero value: always
	rates   rates
}

// entry is one model's prices.
type entry struct {
	base     rates
	batch    *rates // the base, with its rates for batches
	variants []variant
	unpriced bool
}

func (r *rates) set(c Class, femtos int64) { r.rate[c] = femtos; r.has |= 1 << c }

// parseEntry reads the sections of a line after provider and model.
func parseEntry(name, sections string) (*entry, error) {
	e := new(entry)
	e.base.line = name
	first, rest, more := strings.Cut(sections, "\t")
	if err := e.base.parse(first, &e.unpriced); err != nil {
		return nil, err
	}
	if e.base.has == 0 && !e.base.byMinute && len(e.base.tables) == 0 && !more {
		e.unpriced = true
	}
	for more {
		var section string
		section, rest, more = strings.Cut(rest, "\t")
		header, body, _ := strings.Cut(section, " ")
		if header == "+batch" {
			batch := e.base
			if err := batch.parse(body, nil); err != nil {
				return nil, err
			}
			batch.complete()
			batch.line = name + " +batch"
			e.batch = &batch
			continue
		}
		var v variant
		v.rates.line = name + " " + header
		if head, when, ok := strings.Cut(header, "["); ok {
			var err error
			if v.when, err = parsePeriod(when); err != nil {
				return nil, err
			}
			header = head
		}
		if head, over, ok := strings.Cut(header, ">"); ok {
			header = head
			n, exact, err := parseDecimal(over, 0)
			if err != nil || !exact {
				return nil, fmt.Errorf("pricing: %q is not a number of tokens", over)
			}
			v.over = n
		}
		v.mode, v.regions, _ = strings.Cut(header, "@")
		if err := v.rates.parse(body, nil); err != nil {
			return nil, err
		}
		v.rates.include(&e.base)
		v.rates.complete()
		e.variants = append(e.variants, v)
	}
	e.base.complete()
	return e, nil
}

// parse reads name=price words into r.
func (r *rates) parse(section string, unpriced *bool) error {
	for word := range strings.FieldsSeq(section) {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case !ok && name == "per_image":
			r.perImage = true
			continue
		case !ok && name == "unpriced" && unpriced != nil:
			*unpriced = true
			continue
		}
		if strings.HasPrefix(name, "default_") {
			n, exact, err := parseDecimal(value, 0)
			if err != nil || !exact {
				return fmt.Errorf("pricing: %q is not a count", word)
			}
			if !r.defaults.set(name, n) {
				return fmt.Errorf("pricing: unknown default %q", name)
			}
			continue
		}
		price, exact, err := parseDecimal(value, 9) // dollars per million = 1e9 femto-dollars per unit
		if err != nil || !exact {
			return fmt.Errorf("pricing: %q is not a price", word)
		}
		if err := r.setNamed(name, price); err != nil {
			return err
		}
	}
	return nil
}

func (r *rates) setNamed(name string, price int64) error {
	if name == "minute" {
		r.minute, r.byMinute = price, true
		return nil
	}
	name, key, keyed := strings.Cut(name, "@")
	c, ok := ClassNamed(name)
	if !ok {
		return fmt.Errorf("pricing: unknown class %q", name)
	}
	if keyed {
		r.tables = append(r.tables, choice{c, key, price})
	} else {
		r.set(c, price)
	}
	return nil
}

func (d *Defaults) set(name string, n int64) bool {
	switch name {
	case "default_seconds":
		d.Seconds = n
	case "default_samples":
		d.Samples = n
	case "default_steps":
		d.Steps = n
	default:
		return false
	}
	return true
}

// fallback names, for a class without a price, the classes with prices that are used instead,
// nearest first. An undeclared discount or premium is not assumed: cached tokens cost as much
// as plain ones.
var fallback = [NumClasses][]Class{
	CacheRead:      {Input},
	CacheWrite5m:   {Input},
	CacheWrite30m:  {CacheWrite5m, Input}, // a list with one price for writes means the default time
	CacheWrite1h:   {CacheWrite5m, Input},
	AudioIn:        {Input},
	AudioCacheRead: {AudioIn, Input},
	ImageIn:        {Input},
	ImageCacheRead: {ImageIn, Input},
	Reasoning:      {Output},
	AudioOut:       {Output},
	ImageOut:       {Output},
	VideoOut:       {Output},
}

// include adopts what the base declares free: that is free in every mode.
func (r *rates) include(base *rates) {
	for c := range NumClasses {
		if bit := uint64(1) << c; base.has&bit != 0 && base.rate[c] == 0 {
			r.has |= bit &^ r.has
		}
	}
}

// complete sets the rates of undeclared classes; has still contains which are declared.
func (r *rates) complete() { fill(&r.rate, r.has) }

func fill(rate *[NumClasses]int64, has uint64) {
	for c, nearest := range fallback {
		if has&(1<<c) != 0 {
			continue
		}
		for _, f := range nearest {
			if has&(1<<f) != 0 {
				rate[c] = rate[f]
				break
			}
		}
	}
}
