package usage

import "encoding/binary"

// append appends the fields of a call. New fields must be appended after them.
func (c *Call) append(b []byte) []byte {
	for _, s := range [...]string{c.Protocol, c.Server, c.Method, c.Name, c.Auth, c.Decision} {
		b = appendString(b, s)
	}
	b = binary.AppendVarint(append(b, flags(c.Refreshed, false, false, false)), c.Code)
	b = append(appendString(b, c.Version), flags(c.Failed, false, false, false))
	later := [...]string{c.Virtual, c.Gateway, c.Scope}
	told := len(later)
	for told > 0 && later[told-1] == "" {
		told--
	}
	for _, s := range later[:told] {
		b = appendString(b, s)
	}
	return b
}

// call reads the output of append.
func (c *cursor) call(r *Record) {
	r.Call = new(Call)
	for _, s := range [...]*string{&r.Call.Protocol, &r.Call.Server, &r.Call.Method, &r.Call.Name, &r.Call.Auth, &r.Call.Decision} {
		*s = c.str()
	}
	c.flags(&r.Call.Refreshed)
	r.Call.Code = c.int()
	if c.rest == "" { // an older version without the remaining fields
		return
	}
	r.Call.Version = c.str()
	c.flags(&r.Call.Failed)
	for _, s := range [...]*string{&r.Call.Virtual, &r.Call.Gateway, &r.Call.Scope} {
		if c.rest == "" || c.bad {
			break
		}
		*s = c.str()
	}
}
