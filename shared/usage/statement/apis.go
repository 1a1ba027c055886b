package statement

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gateway/shared/pricing"
)

// Exports of the usage APIs of OpenAI and Anthropic: pages of buckets of results.

type page[B any] struct {
	Data []B  `json:"data"`
	More bool `json:"has_more"`
}

var errMore = errors.New("it has further pages (has_more): join their data first")

type openAIBucket struct {
	Start   int64 `json:"start_time"`
	End     int64 `json:"end_time"`
	Results []struct {
		Model    *string `json:"model"`
		Input    *int64  `json:"input_tokens"`
		Cached   *int64  `json:"input_cached_tokens"`
		Output   *int64  `json:"output_tokens"`
		Requests *int64  `json:"num_model_requests"`
		Amount   *struct {
			Value    json.Number `json:"value"`
			Currency string      `json:"currency"`
		} `json:"amount"`
	} `json:"results"`
}

func openAI(raw []byte) (lines []Line, err error) {
	var p page[openAIBucket]
	if err := read(raw, &p); err != nil {
		return nil, err
	}
	if p.More {
		return nil, errMore
	}
	for _, b := range p.Data {
		for _, r := range b.Results {
			l := Line{Start: time.Unix(b.Start, 0).UTC(), End: time.Unix(b.End, 0).UTC(), Counts: Counts{Requests: r.Requests, Input: r.Input, Cached: r.Cached, Output: r.Output}}
			if r.Model != nil {
				l.Model = *r.Model
			}
			if r.Amount != nil {
				if l.Cost, err = dollars(string(r.Amount.Value), r.Amount.Currency, 1); err != nil {
					return nil, err
				}
			}
			if err := l.validate(); err != nil {
				return nil, err
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

type anthropicBucket struct {
	Start   time.Time `json:"starting_at"`
	End     time.Time `json:"ending_at"`
	Results []struct {
		Model    *string `json:"model"`
		Uncached *int64  `json:"uncached_input_tokens"`
		Read     *int64  `json:"cache_read_input_tokens"`
		Creation *struct {
			Short int64 `json:"ephemeral_5m_input_tokens"`
			Long  int64 `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
		Output   *int64  `json:"output_tokens"`
		Amount   *string `json:"amount"` // cents
		Currency string  `json:"currency"`
	} `json:"results"`
}

func anthropic(raw []byte) (lines []Line, err error) {
	var p page[anthropicBucket]
	if err := read(raw, &p); err != nil {
		return nil, err
	}
	if p.More {
		return nil, errMore
	}
	for _, b := range p.Data {
		for _, r := range b.Results {
			l := Line{Start: b.Start.UTC(), End: b.End.UTC(), Counts: Counts{Cached: r.Read, Output: r.Output}}
			if r.Model != nil {
				l.Model = *r.Model
			}
			if err := (&Counts{Input: r.Uncached, Cached: r.Read}).validate(); err != nil {
				return nil, err
			}
			plus(&l.Input, r.Uncached)
			plus(&l.Input, r.Read)
			if c := r.Creation; c != nil {
				if err := (&Counts{Input: &c.Short, Output: &c.Long}).validate(); err != nil {
					return nil, err
				}
				plus(&l.Input, &c.Short)
				plus(&l.Input, &c.Long)
			}
			if r.Amount != nil {
				if l.Cost, err = dollars(*r.Amount, r.Currency, 100); err != nil {
					return nil, err
				}
			}
			if err := l.validate(); err != nil {
				return nil, err
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// validate rejects counts that are negative or too large to add.
func (c *Counts) validate() error {
	for name, n := range map[string]*int64{"a count of requests": c.Requests, "a count of input tokens": c.Input, "a count of cached tokens": c.Cached, "a count of output tokens": c.Output} {
		if n != nil && (*n < 0 || *n > maxCount) {
			return fmt.Errorf("%s must be from 0 to 10^14", name)
		}
	}
	return nil
}

func read(raw []byte, into any) error {
	var mistyped *json.UnmarshalTypeError
	err := json.Unmarshal(raw, into)
	if errors.As(err, &mistyped) {
		return fmt.Errorf("%s must be %s", mistyped.Field, mistyped.Type)
	}
	if err != nil {
		return errors.New("it is not valid JSON")
	}
	return nil
}

// dollars parses an amount in units of which parts make a dollar.
func dollars(amount, currency string, parts float64) (*pricing.NanoDollars, error) {
	if currency != "usd" && currency != "USD" && currency != "" {
		return nil, errors.New("amounts must be in USD")
	}
	v, err := strconv.ParseFloat(amount, 64)
	if v /= parts; err != nil || !(v >= -1e9 && v <= 1e9) {
		return nil, errors.New("amounts must be numbers of dollars")
	}
	n := pricing.NanoDollars(v*1e9 + 0.5)
	if v < 0 { // a credit
		n = pricing.NanoDollars(v*1e9 - 0.5)
	}
	return &n, nil
}
