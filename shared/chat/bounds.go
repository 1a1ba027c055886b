package chat

import "math"

// Excess is a limit of the specification that a body exceeds and that some hosts extend. The
// target decides, see Room.
type Excess struct {
	Kind   ExcessKind
	Amount float64 // the amount in the body: a count, or the number itself
	Err    error   // the 400 for targets without an extended limit
}

// ExcessKind identifies the exceeded limit.
type ExcessKind uint8

// The limits that some target extends.
const (
	ManyStops       ExcessKind = iota + 1 // more stop strings
	ManyTools                             // more tools
	HighTemperature                       // temperature
	ManyLogprobs                          // alternatives per token
	CountedLogprobs                       // logprobs of a chat given as a number
	NoEnd                                 // -1 as the token limit: no limit
)

// ExtendedLimits contains the extended limits of a target. The zero value is the specification.
type ExtendedLimits struct {
	Stops           int     // stop strings
	Tools           int     // tools
	Temperature     float64 // maximum
	Logprobs        int     // alternatives per token
	CountedLogprobs int     // maximum of logprobs of a chat given as a number
	NoEnd           bool    // accepts -1 as the token limit
}

// Unbounded is the Room of an unknown host: the host itself rejects what it does not accept.
var Unbounded = ExtendedLimits{
	Stops: math.MaxInt, Tools: math.MaxInt, Temperature: math.MaxFloat64, Logprobs: math.MaxInt, CountedLogprobs: math.MaxInt, NoEnd: true,
}

// Within returns the error of the first excess that the target does not allow.
func (r *ExtendedLimits) Within(all []Excess) error {
	for i := range all {
		if !r.takes(&all[i]) {
			return all[i].Err
		}
	}
	return nil
}

func (r *ExtendedLimits) takes(e *Excess) bool {
	switch e.Kind {
	case ManyStops:
		return e.Amount <= float64(r.Stops)
	case ManyTools:
		return e.Amount <= float64(r.Tools)
	case HighTemperature:
		return e.Amount <= r.Temperature
	case ManyLogprobs:
		return e.Amount <= float64(r.Logprobs)
	case CountedLogprobs:
		return e.Amount <= float64(r.CountedLogprobs)
	case NoEnd:
		return r.NoEnd
	}
	return false
}

// Exceeds records that a body exceeds a limit. It returns err if no target will be consulted.
func (c *Checked) Exceeds(kind ExcessKind, amount float64, err error) error {
	if !c.ByTarget {
		return err
	}
	c.Excess = append(c.Excess, Excess{kind, amount, err})
	return nil
}
