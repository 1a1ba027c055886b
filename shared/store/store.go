// Package store is the gateway's one way to durable rows: tables of items under
// a partition key and a sort key, with conditional writes and transactions.
//
// Two implementations are below it, store/dynamo (DynamoDB) and store/sqlite (one file).
// Both pass testkit/storetest, and the second rejects what the first rejects. There is no
// index, scan, filter or SQL above this package: what must be found in another way has
// its own row, written in the same transaction.
//
// Keys are built from a Scope, so that a row of another tenant cannot be named.
// Credential and System are the two exceptions; see their comments.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
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
// concurrent use and honor the context.
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
	// GetMany reads rows, consistently; absent ones are missing in the response.
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

// Rows returns the rows that a query finds, on all pages. It ends with the first error.
func Rows(ctx context.Context, t Table, q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for {
			page, err := t.Query(ctx, q)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, row := range page.Rows {
				if !yield(row, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
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

// Page is one response of a query. Next is empty at the end, otherwise the After of the next
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

// ConditionError reports that a condition did not hold.
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
	ErrThrottled = errors.New("store: throttled")                                   // after the retries
	ErrContended = errors.New("store: the transaction conflicted with another one") // after the retries
	ErrTooLarge  = errors.New("store: item larger than 400 KB")                     //
	ErrNoMap     = errors.New("store: nested path without its map")                 //
	ErrDuplicate = errors.New("store: same item twice in a transaction")            //
)

// AsCondition returns the *ConditionError in err, if there is one.
func AsCondition(err error) (*ConditionError, bool) {
	var c *ConditionError
	ok := errors.As(err, &c)
	return c, ok
}

// Scope is the tenant that a row belongs to. Workspace is empty for rows of the
// organization itself.
type Scope struct {
	Org       string
	Workspace string
}

// Organisation is the scope without its workspace.
func (s Scope) Organisation() Scope { return Scope{Org: s.Org} }

// Partition names the rows of one tenant in one table: ORG#o or ORG#o#WS#w,
// followed by parts joined with '#'.
func (s Scope) Partition(parts ...string) Partition {
	if s.Org == "" {
		panic("store: a scope without an organization")
	}
	var b strings.Builder
	b.WriteString("ORG#")
	b.WriteString(clean(s.Org))
	if s.Workspace != "" {
		b.WriteString("#WS#")
		b.WriteString(clean(s.Workspace))
	}
	for _, p := range parts {
		b.WriteByte('#')
		b.WriteString(p)
	}
	return Partition{b.String()}
}

// Credential is the partition of a row that is found by the hash of a secret (API key,
// session, invite, download token) before its tenant is known. kind is upper case, hash
// is hex; the row contains the Scope. Such rows have the sort key "-".
func Credential(kind, hash string) Key {
	return Partition{kind + "#" + clean(hash)}.Key("-")
}

// System is a partition of internal records that span tenants: outboxes and due lists.
// The row contains the tenant. It must never be used for a resource.
func System(name string) Partition { return Partition{"SYS#" + name} }

// Partition is all rows with one partition key.
type Partition struct{ pk string }

// Key is the row of the partition with the sort key made of parts joined by '#'.
func (p Partition) Key(parts ...string) Key {
	return Key{pk: p.pk, sk: strings.Join(parts, "#")}
}

// String is the raw partition key, for the implementations and for logs.
func (p Partition) String() string { return p.pk }

// Key names one row. It is comparable, and only this package can build it.
type Key struct{ pk, sk string }

// PK and SK are the raw keys, for the implementations.
func (k Key) PK() string { return k.pk }
func (k Key) SK() string { return k.sk }

// Partition is the partition that the row is in.
func (k Key) Partition() Partition { return Partition{k.pk} }

// RawKey is for implementations that read keys back from their medium.
func RawKey(pk, sk string) Key { return Key{pk, sk} }

// clean escapes an identifier for its key segment. Different identifiers stay different,
// so '%' is escaped too.
func clean(id string) string {
	if strings.ContainsAny(id, "#%\x00") {
		return strings.NewReplacer("#", "%23", "%", "%25", "\x00", "%00").Replace(id)
	}
	return id
}
