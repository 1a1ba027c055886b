package export

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// encoder writes logs as lines.
type encoder struct {
	order  *Order
	fields []*field
	sealer seal.Sealer
	buf    []byte
}

func newEncoder(o *Order, s seal.Sealer) *encoder {
	return &encoder{order: o, fields: named(o.Fields), sealer: s}
}

// head writes what stands before the first log.
func (e *encoder) head(out io.Writer) error {
	if e.order.Format != CSV {
		return nil
	}
	e.buf = e.buf[:0]
	for i, f := range e.fields {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, f.name...)
	}
	return e.send(out, "\r\n")
}

func (e *encoder) send(out io.Writer, end string) error {
	e.buf = append(e.buf, end...)
	_, err := out.Write(e.buf)
	return err
}

// record writes a log.
func (e *encoder) record(ctx context.Context, out io.Writer, r *usage.Record) error {
	l := line{Record: r, bodies: &usage.Bodies{}}
	if e.order.Bodies && len(r.Bodies) > 0 {
		if err := e.open(ctx, &l); err != nil {
			return err
		}
	}
	e.buf = e.buf[:0]
	if e.order.Format == CSV {
		for i, f := range e.fields {
			if i > 0 {
				e.buf = append(e.buf, ',')
			}
			e.buf = appendCell(e.buf, f.value(&l))
		}
		return e.send(out, "\r\n")
	}
	for i, f := range e.fields {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		e.buf = wire.AppendJSONString(append(e.buf, open), f.name)
		e.buf = appendJSON(append(e.buf, ':'), f.value(&l))
	}
	return e.send(out, "}\n")
}

// open unseals the bodies of a log. One whose bodies are lost is exported without
// them.
func (e *encoder) open(ctx context.Context, l *line) error {
	plain, err := e.sealer.Open(ctx, l.BodiesBinding(), l.Record.Bodies)
	if err == nil {
		var b usage.Bodies
		if b, err = usage.DecodeBodies(plain); err == nil {
			l.bodies = &b
			return nil
		}
	} else if !errors.Is(err, seal.ErrRefused) {
		return err
	}
	slog.Error("bodies of a log cannot be read", "log", l.ID, "error", err)
	return nil
}

func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return wire.AppendJSONString(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendNumber(dst, v)
	case json.RawMessage:
		return append(dst, v...)
	}
	return append(dst, "null"...)
}

// appendNumber writes a number that JSON and tables read alike: never with an
// exponent.
func appendNumber(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// formulas are the first characters by which programs for tables take a text for a
// formula. Such a text gets an apostrophe before it.
const formulas = "=+-@\t\r"

func appendCell(dst []byte, v any) []byte {
	var s string
	switch v := v.(type) {
	case nil:
		return dst
	case string:
		if s = v; s != "" && strings.IndexByte(formulas, s[0]) >= 0 {
			s = "'" + s
		}
	case json.RawMessage:
		s = string(v)
	default:
		return appendJSON(dst, v)
	}
	if !strings.ContainsAny(s, "\",\r\n") {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}
