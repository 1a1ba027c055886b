package chat

import "math"

// Excess is a bound of the specification that a body exceeds and that some hosts are known
// to set wider. The target decides, see Room.
type Excess struct {
	Kind   ExcessKind
	Amount float64 // what the body has: how many, or the number itself
	Err    error   // the 400 for targets that are not known to be wider
}

// ExcessKind says which bound is passed.
type ExcessKind uint8

// The bounds that some target widens.
const (
	ManyStops       ExcessKind = iota + 1 // more stop strings
	ManyTools                             // more tools
	HighTemperature                       // a higher temperature
	ManyLogprobs                          // more alternatives of each token
	CountedLogprobs                       // logprobs of a chat as a number
	NoEnd                                 // -1 as the bound of tokens: none
)

// Room is how much wider than the specification a target's bounds are. The zero
// value is the specification.
type Room struct {
	Stops           int     // most stop strings
	Tools           int     // most tools
	Temperature     float64 // highest
	Logprobs        int     // most alternatives of each token
	CountedLogprobs int     // highest logprobs of a chat that is a number
	NoEnd           bool    // takes -1 as the bound of tokens
}

// Unbounded is the room of a host of which nothing is known: the host itself refuses what
// it does not take.
var Unbounded = Room{
	Stops: math.MaxInt, Tools: math.MaxInt, Temperature: math.MaxFloat64, Logprobs: math.MaxInt, CountedLogprobs: math.MaxInt, NoEnd: true,
}

// Within returns the 400 for the first excess that the target has no room for.
func (r *Room) Within(all []Excess) error {
	for i := range all {
		if !r.takes(&all[i]) {
			return all[i].Err
		}
	}
	return nil
}

func (r *Room) takes(e *Excess) bool {
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

// Exceeds notes that a body exceeds a bound. It returns err at once where nobody will ask
// the target.
func (c *Checked) Exceeds(kind ExcessKind, amount float64, err error) error {
	if !c.ByTarget {
		return err
	}
	c.Excess = append(c.Excess, Excess{kind, amount, err})
	return nil
}
