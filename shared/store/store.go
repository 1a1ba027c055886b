package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TableName is one of the six tables.
type TableName string

const (
	Control TableName = "control" // resources, versions, slugs, lists, generations, outboxes
	Keys    TableName = "keys"    // rows found by the hash of a secret
	Rate    TableName = "rate"    // one item per rate-limited subject
	Spend   TableName = "spend"   // one item per budgeted subject
	Usage   TableName = "usage"   // segments, cubes, manifests
	Audit   TableName = "audit"   // append only
)

// TableNames lists all tables, in the order they are created.
var TableNames = []TableName{Control, Keys, Rate, Spend, Usage, Audit}

// Limits that both implementations enforce (DynamoDB's own).
const (
	MaxItemBytes       = 400 << 10 // an item with its attribute names
	MaxPageBytes       = 1 << 20   // a query's page
	MaxTransactActions = 100
	MaxBatch           = 100 // GetMany, PutMany: larger batches are split
)

// Value is string, []byte, int64, bool or Map. Nothing else is stored.
type Value any

// Map is a map one level deep; its values are string, []byte, int64 or bool.
type Map map[string]Value

// Item is a row's attributes without its keys. The attribute names pk, sk and
// expires are reserved.
type Item map[string]Value

// String, Int, Bytes, Bool and Map read one attribute; they give the zero value if it is
// absent or of another type.
func (it Item) String(attr string) string { v, _ := it[attr].(string); return v }
func (it Item) Int(attr string) int64     { v, _ := it[attr].(int64); return v }
func (it Item) Bytes(attr string) []byte  { v, _ := it[attr].([]byte); return v }
func (it Item) Bool(attr string) bool     { v, _ := it[attr].(bool); return v }
func (it Item) Map(attr string) Map       { v, _ := it[attr].(Map); return v }

// Row is an item with its key.
type Row struct {
	Key     Key
	Item    Item
	Expires time.Time // zero means never. Precise to the second.
}

// Store returns the tables and transactions across them. All methods are safe for
// concurrent use and honour the context.
type Store interface {
	Table(TableName) Table
	// Transact does all actions or none. A failed condition is a *ConditionError that
	// names the action. ErrContended is a conflict with another transaction that lasted
	// longer than the retries. The same item twice is rejected.
	Transact(ctx context.Context, actions ...Action) error
	Close() error
}

// Table is one table. A read of a row past its expiry finds nothing; conditions
// and updates see it until it is deleted.
type Table interface {
	// Get reads a row; ok is false when it is absent or expired.
	Get(ctx context.Context, key Key, consistent bool) (item Item, ok bool, err error)
	// GetMany reads rows, consistently; absent ones are missing in the answer.
	GetMany(ctx context.Context, keys []Key) (map[Key]Item, error)
	// Put writes a complete row if all conditions hold.
	Put(ctx context.Context, row Row, conds ...Cond) error
	// PutMany writes rows unconditionally; not atomic, retried until all are written.
	PutMany(ctx context.Context, rows []Row) error
	// Update changes attributes of a row, and makes it when absent (unless a condition
	// forbids that, or attributes are only removed). It returns the row before and after; nil
	// means an absent row.
	Update(ctx context.Context, u Update) (before, after Item, err error)
	// Delete removes a row if all conditions hold; removing an absent row
	// without conditions succeeds.
	Delete(ctx context.Context, key Key, conds ...Cond) error
	// Query reads one partition in the order of the sort key.
	Query(ctx context.Context, q Query) (Page, error)
}

// Update is a change to one row.
type Update struct {
	Key    Key
	Set    []Assign
	Add    []Increment // absent counts as 0
	Remove []Path
	If     []Cond
	// Expires, when not zero, sets the row's expiry.
	Expires time.Time
	// Look, when not nil, is called once with the row after the update, and Table.Update
	// returns no items. It must not change or keep the item, nor use the store. A store that
	// has the row in memory then does not copy it.
	Look func(after Item)
}

// Path is an attribute, or one key of a map attribute. Writing to a key of a map
// that the row does not have fails with ErrNoMap (as DynamoDB does).
type Path struct {
	Attr string
	Key  string // if empty, the complete attribute
}

// At makes a Path from "attr".
func At(attr string) Path { return Path{Attr: attr} }

// In makes a Path from a map attribute and one of its keys.
func In(attr, key string) Path { return Path{Attr: attr, Key: key} }

func (p Path) String() string {
	if p.Key == "" {
		return p.Attr
	}
	return p.Attr + "." + p.Key
}

// Assign sets a path to a value.
type Assign struct {
	Path  Path
	Value Value
}

// Increment adds By (which may be negative) to a number.
type Increment struct {
	Path Path
	By   int64
}

// Op is the kind of a condition.
type Op uint8

const (
	ItemAbsent  Op = iota + 1 // the row does not exist
	ItemPresent               // the row exists
	Absent                    // the attribute does not exist
	Present                   // the attribute exists
	Equal                     // string, int64, bool or []byte equality
	AtLeast                   // int64 or string >=; false when absent
	AtMost                    // int64 or string <=; false when absent
)

// Cond is one condition; several are joined by AND.
type Cond struct {
	Op    Op
	Path  Path
	Value Value
}

// IfAbsent and the others make conditions.
func IfAbsent() Cond                 { return Cond{Op: ItemAbsent} }
func IfPresent() Cond                { return Cond{Op: ItemPresent} }
func IfMissing(p Path) Cond          { return Cond{Op: Absent, Path: p} }
func IfHas(p Path) Cond              { return Cond{Op: Present, Path: p} }
func IfEqual(p Path, v Value) Cond   { return Cond{Op: Equal, Path: p, Value: v} }
func IfAtLeast(p Path, v Value) Cond { return Cond{Op: AtLeast, Path: p, Value: v} }
func IfAtMost(p Path, v Value) Cond  { return Cond{Op: AtMost, Path: p, Value: v} }

// Query reads rows of one partition with a sort key that has the prefix, or is in [From,
// To] (either may be empty). Prefix and From/To exclude each other.
type Query struct {
	Partition Partition
	Prefix    string
	From, To  string
	After     string // continue after this sort key (exclusive), in the query's direction
	Limit     int    // 0 means as many as fit in a page of MaxPageBytes
	Reverse   bool
	CountOnly bool // Page.Count is set, Rows is empty
	// Eventual allows a stale read; the default is consistent.
	Eventual bool
}

// Page is one answer of a query. Next is empty at the end, otherwise the After of the next
// page. That page may be empty: a full page does not know whether it is the last.
type Page struct {
	Rows  []Row
	Count int
	Next  string
}

// Action is one write or check of a transaction: exactly one of the four.
type Action struct {
	Table  TableName
	Put    *Put
	Update *Update
	Delete *Delete
	Check  *Check
}

// Put writes a row if its conditions hold.
type Put struct {
	Row Row
	If  []Cond
}

// Delete removes a row if its conditions hold.
type Delete struct {
	Key Key
	If  []Cond
}

// Check only tests conditions.
type Check struct {
	Key Key
	If  []Cond
}

// ConditionError says that a condition did not hold.
type ConditionError struct {
	Action  int  // index in the transaction; 0 for single writes
	Key     Key  // of the row
	Current Item // the present row; nil when it does not exist
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("store: condition of action %d failed", e.Action)
}

// Errors that callers distinguish.
var (
	ErrThrottled = errors.New("store: throttled")                        // after the retries
	ErrContended = errors.New("store: another transaction was faster")   // after the retries
	ErrTooLarge  = errors.New("store: item larger than 400 KB")          //
	ErrNoMap     = errors.New("store: nested path without its map")      //
	ErrDuplicate = errors.New("store: same item twice in a transaction") //
)

// AsCondition returns the *ConditionError in err, if there is one.
func AsCondition(err error) (*ConditionError, bool) {
	var c *ConditionError
	ok := errors.As(err, &c)
	return c, ok
}
