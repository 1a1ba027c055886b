package otlp

import (
	stdbytes "bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// maxDepth is how deep JSON may be: each nested value takes three levels.
const maxDepth = 12 + 3*maxNested

// The JSON form of OTLP: names in camel case, 64-bit numbers as strings or numbers.
type (
	jsonRequest struct {
		Spans []jsonResource `json:"resourceSpans"`
		Logs  []jsonResource `json:"resourceLogs"`
	}
	jsonResource struct {
		Resource struct {
			Attributes jsonPairs `json:"attributes"`
		} `json:"resource"`
		Spans []struct {
			Spans []jsonSpan `json:"spans"`
		} `json:"scopeSpans"`
		Logs []struct {
			Records []jsonRecord `json:"logRecords"`
		} `json:"scopeLogs"`
	}
	jsonSpan struct {
		Trace      string    `json:"traceId"`
		ID         string    `json:"spanId"`
		Parent     string    `json:"parentSpanId"`
		Name       string    `json:"name"`
		Start      jsonInt   `json:"startTimeUnixNano"`
		End        jsonInt   `json:"endTimeUnixNano"`
		Attributes jsonPairs `json:"attributes"`
		Events     []struct {
			Name       string    `json:"name"`
			Attributes jsonPairs `json:"attributes"`
		} `json:"events"`
		Status struct {
			Message string   `json:"message"`
			Code    jsonCode `json:"code"`
		} `json:"status"`
	}
	jsonRecord struct {
		Time       jsonInt   `json:"timeUnixNano"`
		Observed   jsonInt   `json:"observedTimeUnixNano"`
		Event      string    `json:"eventName"`
		Body       jsonValue `json:"body"`
		Attributes jsonPairs `json:"attributes"`
		Trace      string    `json:"traceId"`
		ID         string    `json:"spanId"`
	}
	jsonPairs []struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct {
		Text  *string  `json:"stringValue"`
		Bool  *bool    `json:"boolValue"`
		Int   *jsonInt `json:"intValue"`
		Real  *real64  `json:"doubleValue"`
		Bytes *string  `json:"bytesValue"`
		Array *struct {
			Values []jsonValue `json:"values"`
		} `json:"arrayValue"`
		Pairs *struct {
			Values jsonPairs `json:"values"`
		} `json:"kvlistValue"`
	}
	jsonInt  int64
	jsonCode int
	real64   float64
)

// UnmarshalJSON implements json.Unmarshaler.
func (n *jsonInt) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("has %.40s where a whole number of 64 bits must be", b)
	}
	*n = jsonInt(v)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler: a code is a number, or its name.
func (c *jsonCode) UnmarshalJSON(b []byte) error {
	switch strings.Trim(string(b), `"`) {
	case "1", "STATUS_CODE_OK":
		*c = StatusOK
	case "2", "STATUS_CODE_ERROR":
		*c = StatusError
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler: the value is a number or a string.
func (x *real64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		v = 0
	}
	*x = real64(v)
	return nil
}

// ReadJSONTraces reads an ExportTraceServiceRequest in JSON.
func ReadJSONTraces(b []byte) (out []Told, err error) {
	in, err := parse(b)
	if err != nil {
		return nil, err
	}
	for i := range in.Spans {
		origin, err := in.Spans[i].Resource.Attributes.read(0)
		if err != nil {
			return nil, err
		}
		for _, scope := range in.Spans[i].Spans {
			for j := range scope.Spans {
				t := Told{Origin: origin}
				if err := scope.Spans[j].read(&t); err != nil {
					return nil, err
				}
				if out = append(out, t); len(out) > MaxTold {
					return nil, errMany
				}
			}
		}
	}
	return out, nil
}

// ReadJSONLogs reads an ExportLogsServiceRequest in JSON.
func ReadJSONLogs(b []byte) (out []Told, err error) {
	in, err := parse(b)
	if err != nil {
		return nil, err
	}
	for i := range in.Logs {
		origin, err := in.Logs[i].Resource.Attributes.read(0)
		if err != nil {
			return nil, err
		}
		for _, scope := range in.Logs[i].Logs {
			for j := range scope.Records {
				t := Told{Origin: origin}
				if err := scope.Records[j].read(&t); err != nil {
					return nil, err
				}
				if out = append(out, t); len(out) > MaxTold {
					return nil, errMany
				}
			}
		}
	}
	return out, nil
}

func parse(b []byte) (*jsonRequest, error) {
	if err := wire.CheckStrict(b, maxDepth); err != nil {
		return nil, err
	}
	if wire.KindOf(stdbytes.TrimSpace(b)) != wire.KindObject {
		return nil, fault.Invalid("", "The body must be a JSON object")
	}
	in := new(jsonRequest)
	err := json.Unmarshal(b, in)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return nil, fault.Invalid(wrong.Field, "is a %s; OTLP has another type there", wrong.Value)
	}
	return in, err
}

func (s *jsonSpan) read(t *Told) (err error) {
	t.Trace, t.ID, t.Parent, t.Name = t.hexID(s.Trace, traceLen), t.hexID(s.ID, spanLen), t.hexID(s.Parent, spanLen), s.Name
	t.Start, t.End = instantOf(s.Start), instantOf(s.End)
	t.Status, t.Message = int(s.Status.Code), s.Status.Message
	if len(s.Events) > maxEvents {
		return errEvents
	}
	for _, e := range s.Events {
		attrs, err := e.Attributes.read(0)
		if err != nil {
			return err
		}
		t.Events = append(t.Events, ToldEvent{e.Name, attrs})
	}
	t.Attrs, err = s.Attributes.read(0)
	return err
}

func (r *jsonRecord) read(t *Told) (err error) {
	t.Trace, t.ID, t.Name = t.hexID(r.Trace, traceLen), t.hexID(r.ID, spanLen), r.Event
	if t.Start = instantOf(r.Time); t.Start.IsZero() {
		t.Start = instantOf(r.Observed)
	}
	t.End = t.Start
	if t.Body, err = r.Body.read(0); err != nil {
		return err
	}
	t.Attrs, err = r.Attributes.read(0)
	return err
}

func instantOf(n jsonInt) time.Time { return at(uint64(n)) }

func (p jsonPairs) read(depth int) (map[string]any, error) {
	if len(p) > maxAttrs {
		return nil, errAttrs
	}
	out := make(map[string]any, len(p))
	for _, one := range p {
		v, err := one.Value.read(depth)
		if err != nil {
			return nil, err
		}
		out[one.Key] = v
	}
	return out, nil
}

func (v *jsonValue) read(depth int) (any, error) {
	if depth > maxNested {
		return nil, errNested
	}
	switch {
	case v.Text != nil:
		return *v.Text, nil
	case v.Bool != nil:
		return *v.Bool, nil
	case v.Int != nil:
		return int64(*v.Int), nil
	case v.Real != nil:
		return float64(*v.Real), nil
	case v.Bytes != nil:
		return *v.Bytes, nil
	case v.Array != nil:
		list := make([]any, len(v.Array.Values))
		for i := range list {
			var err error
			if list[i], err = v.Array.Values[i].read(depth + 1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case v.Pairs != nil:
		return v.Pairs.Values.read(depth + 1)
	}
	return nil, nil
}
