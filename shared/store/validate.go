package store

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Errors of requests that no store accepts, and of responses that did not come.
var (
	// ErrInvalid is a request that breaks a rule of this package: an empty key, a value of an
	// unsupported type, two changes of one path, adding to a text.
	ErrInvalid = errors.New("store: not a valid request")
	// ErrUncertain is returned for a write with a lost response: it may or may not have
	// happened. Read before repeating it.
	ErrUncertain = errors.New("store: the write may or may not have happened")
	// ErrClosed is a call to a store after Close.
	ErrClosed = errors.New("store: closed")
)

// DynamoDB's own bounds on keys and transactions, in bytes.
const (
	MaxPartitionKeyBytes = 2048
	MaxSortKeyBytes      = 1024
	MaxTransactBytes     = 4 << 20 // all items of one transaction
	// MaxPaths and MaxConds of one update keep its expressions in DynamoDB's
	// 4 KB and 300 operators.
	MaxPaths = 64
	MaxConds = 32
)

// invalid returns the fault of a request, without its contents.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Epoch returns the stored form of t: seconds since 1970, 0 for never.
func Epoch(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(1, t.Unix())
}

// FromEpoch is the reverse of Epoch.
func FromEpoch(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// Validate rejects keys that are empty, too long or not UTF-8.
func (k Key) Validate() error {
	switch {
	case k.pk == "" || k.sk == "":
		return invalid("an empty key")
	case len(k.pk) > MaxPartitionKeyBytes || len(k.sk) > MaxSortKeyBytes:
		return invalid("a partition key over %d or a sort key over %d bytes", MaxPartitionKeyBytes, MaxSortKeyBytes)
	case !utf8.ValidString(k.pk) || !utf8.ValidString(k.sk):
		return invalid("a key that is not UTF-8")
	}
	return nil
}

// Validate rejects keys, names and values that cannot be stored, and rows over
// MaxItemBytes with ErrTooLarge.
func (r Row) Validate() error {
	if err := r.Key.Validate(); err != nil {
		return err
	}
	for name, v := range r.Item {
		if err := validateName(name); err != nil {
			return err
		}
		if err := validateValue(name, v); err != nil {
			return err
		}
	}
	if r.Item.Size(r.Key) > MaxItemBytes {
		return ErrTooLarge
	}
	return nil
}

func validateName(name string) error {
	switch name {
	case "":
		return invalid("an attribute without a name")
	case "pk", "sk", "expires":
		return invalid("the attribute name %s is reserved", name)
	}
	if !validText(name) {
		return invalid("an attribute name that is not UTF-8")
	}
	return nil
}

// validText is utf8.ValidString, faster for the short names of attributes.
func validText(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return utf8.ValidString(s)
		}
	}
	return true
}

func validateValue(name string, v Value) error {
	m, ok := v.(Map)
	if !ok {
		return validateScalar(name, v)
	}
	for k, e := range m {
		if k == "" || !utf8.ValidString(k) {
			return invalid("a key of map %q is empty or not UTF-8", name)
		}
		if err := validateScalar(name, e); err != nil {
			return err
		}
	}
	return nil
}

func validateScalar(name string, v Value) error {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return invalid("attribute %q holds a string that is not UTF-8", name)
		}
	case []byte, int64, bool:
	default:
		return invalid("attribute %q holds a %T; allowed are string, []byte, int64, bool and a map of these", name, v)
	}
	return nil
}

// Validate rejects updates that no store accepts: no paths or overlapping ones, values
// that cannot be stored, malformed conditions.
func (u *Update) Validate() error {
	if err := u.Key.Validate(); err != nil {
		return err
	}
	if len(u.Set)+len(u.Add)+len(u.Remove) == 0 && u.Expires.IsZero() {
		return invalid("an update that changes nothing")
	}
	if err := u.validatePaths(); err != nil {
		return err
	}
	for i := range u.Set {
		a := &u.Set[i]
		var err error
		if a.Path.Key == "" {
			err = validateValue(a.Path.Attr, a.Value)
		} else {
			err = validateScalar(a.Path.Attr, a.Value)
		}
		if err != nil {
			return err
		}
	}
	return ValidateConds(u.If)
}

// validatePaths compares the few paths pairwise: two changes must not overlap.
func (u *Update) validatePaths() error {
	n := len(u.Set) + len(u.Add) + len(u.Remove)
	at := func(i int) *Path {
		switch {
		case i < len(u.Set):
			return &u.Set[i].Path
		case i < len(u.Set)+len(u.Add):
			return &u.Add[i-len(u.Set)].Path
		default:
			return &u.Remove[i-len(u.Set)-len(u.Add)]
		}
	}
	if n > MaxPaths {
		return invalid("%d paths in one update; at most %d are allowed", n, MaxPaths)
	}
	if n > 16 {
		return validateManyPaths(n, func(i int) Path { return *at(i) })
	}
	var paths [16]*Path
	for i := range n {
		p := at(i)
		if err := p.validate(); err != nil {
			return err
		}
		for _, q := range paths[:i] {
			if q.Attr == p.Attr && (q.Key == p.Key || q.Key == "" || p.Key == "") {
				return invalid("two changes of %q in one update", p.Attr)
			}
		}
		paths[i] = p
	}
	return nil
}

func validateManyPaths(n int, at func(int) Path) error {
	seen := make(map[Path]bool, 2*n)
	for i := range n {
		p := at(i)
		if err := p.validate(); err != nil {
			return err
		}
		inside := Path{Attr: p.Attr, Key: "\x00"} // represents a change of any key of the attribute
		whole := At(p.Attr)
		if seen[p] || seen[whole] || p.Key == "" && seen[inside] {
			return invalid("two changes of %q in one update", p.Attr)
		}
		seen[p] = true
		if p.Key != "" {
			seen[inside] = true
		}
	}
	return nil
}

func (p *Path) validate() error {
	if !validText(p.Key) {
		return invalid("a key of map %q is not UTF-8", p.Attr)
	}
	return validateName(p.Attr)
}

// ValidateConds rejects conditions with an operator, path or value that cannot be
// evaluated.
func ValidateConds(conds []Cond) error {
	if len(conds) > MaxConds {
		return invalid("%d conditions; at most %d are allowed", len(conds), MaxConds)
	}
	for i := range conds {
		c := &conds[i]
		if c.Op == ItemAbsent || c.Op == ItemPresent {
			continue
		}
		if err := c.Path.validate(); err != nil {
			return err
		}
		if err := c.validateOperand(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cond) validateOperand() error {
	switch c.Op {
	case Absent, Present:
		return nil
	case Equal:
		return validateScalar(c.Path.Attr, c.Value)
	case AtLeast, AtMost:
		switch c.Value.(type) {
		case int64, string:
			return validateScalar(c.Path.Attr, c.Value)
		}
		return invalid("at least and at most take an int64 or a string, not a %T", c.Value)
	}
	return invalid("unknown condition %d", c.Op)
}

// Validate rejects queries without a partition, with a prefix and a range, or with a
// negative limit.
func (q *Query) Validate() error {
	switch {
	case q.Partition.pk == "":
		return invalid("an empty key")
	case q.Prefix != "" && (q.From != "" || q.To != ""):
		return invalid("a query by prefix and by range")
	case q.Limit < 0:
		return invalid("a negative limit")
	}
	for _, s := range []string{q.Partition.pk, q.Prefix, q.From, q.To, q.After} {
		if !utf8.ValidString(s) {
			return invalid("a key that is not UTF-8")
		}
	}
	return nil
}

// Target is the row of an action.
func (a *Action) Target() Key {
	switch {
	case a.Put != nil:
		return a.Put.Row.Key
	case a.Update != nil:
		return a.Update.Key
	case a.Delete != nil:
		return a.Delete.Key
	case a.Check != nil:
		return a.Check.Key
	}
	return Key{}
}

// Conds are the conditions of an action.
func (a *Action) Conds() []Cond {
	switch {
	case a.Put != nil:
		return a.Put.If
	case a.Update != nil:
		return a.Update.If
	case a.Delete != nil:
		return a.Delete.If
	case a.Check != nil:
		return a.Check.If
	}
	return nil
}

func (a *Action) validate() error {
	n := 0
	for _, set := range [...]bool{a.Put != nil, a.Update != nil, a.Delete != nil, a.Check != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return invalid("an action must be exactly one of put, update, delete and check")
	}
	switch {
	case a.Put != nil:
		if err := a.Put.Row.Validate(); err != nil {
			return err
		}
	case a.Update != nil:
		return a.Update.Validate()
	case a.Check != nil && len(a.Check.If) == 0:
		return invalid("a check without a condition")
	}
	if err := a.Target().Validate(); err != nil {
		return err
	}
	return ValidateConds(a.Conds())
}

// ValidateActions rejects transactions that no store accepts: more than
// MaxTransactActions, puts over MaxTransactBytes in all, an unknown table, one row twice
// (ErrDuplicate).
func ValidateActions(actions []Action) error {
	if len(actions) > MaxTransactActions {
		return invalid("%d actions in one transaction; at most %d are allowed", len(actions), MaxTransactActions)
	}
	type target struct {
		table TableName
		key   Key
	}
	var seen map[target]bool
	if len(actions) > 1 {
		seen = make(map[target]bool, len(actions))
	}
	size := 0
	for i := range actions {
		a := &actions[i]
		if !a.Table.IsValid() {
			return invalid("unknown table %q", a.Table)
		}
		if err := a.validate(); err != nil {
			return err
		}
		t := target{a.Table, a.Target()}
		if seen[t] {
			return ErrDuplicate
		}
		if seen != nil {
			seen[t] = true
		}
		if a.Put != nil {
			size += a.Put.Row.Item.Size(t.key)
		}
	}
	if size > MaxTransactBytes {
		return fmt.Errorf("%w, or a transaction larger than 4 MB", ErrTooLarge)
	}
	return nil
}

// IsValid reports whether the table is one of TableNames.
func (n TableName) IsValid() bool {
	switch n {
	case Control, Keys, Rate, Spend, Usage, Audit:
		return true
	}
	return false
}
