package dynamo

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store"
)

// The attributes that are not in an Item.
const (
	attrPK      = "pk"
	attrSK      = "sk"
	attrExpires = "expires"
)

type attributes = map[string]types.AttributeValue

// encode is a validated value as an attribute.
func encode(v store.Value) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int64:
		return number(v)
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []byte:
		if v == nil {
			v = []byte{} // the SDK would send null
		}
		return &types.AttributeValueMemberB{Value: v}
	case store.Map:
		m := make(attributes, len(v))
		for k, e := range v {
			m[k] = encode(e)
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	panic(fmt.Sprintf("store: a %T passed validation", v))
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func encodeKey(k store.Key) attributes {
	return attributes{
		attrPK: &types.AttributeValueMemberS{Value: k.PK()},
		attrSK: &types.AttributeValueMemberS{Value: k.SK()},
	}
}

func encodeRow(r store.Row) attributes {
	m := make(attributes, len(r.Item)+3)
	for k, v := range r.Item {
		m[k] = encode(v)
	}
	m[attrPK] = &types.AttributeValueMemberS{Value: r.Key.PK()}
	m[attrSK] = &types.AttributeValueMemberS{Value: r.Key.SK()}
	if e := store.Epoch(r.Expires); e != 0 {
		m[attrExpires] = number(e)
	}
	return m
}

var errForeign = errors.New("store: dynamodb: a row has an attribute of an unsupported type")

// decodeRow is the reverse of encodeRow; expires is 0 for never.
func decodeRow(m attributes) (row store.Row, expires int64, err error) {
	var pk, sk string
	row.Item = make(store.Item, max(0, len(m)-2))
	for name, a := range m {
		switch name {
		case attrPK, attrSK:
			s, ok := a.(*types.AttributeValueMemberS)
			if !ok {
				return row, 0, errForeign
			}
			if name == attrPK {
				pk = s.Value
			} else {
				sk = s.Value
			}
		case attrExpires:
			v, err := decode(a)
			if err != nil {
				return row, 0, err
			}
			expires, _ = v.(int64)
		default:
			if row.Item[name], err = decode(a); err != nil {
				return row, 0, err
			}
		}
	}
	row.Key, row.Expires = store.RawKey(pk, sk), store.FromEpoch(expires)
	return row, expires, nil
}

// decodeItem is the row's attributes alone; nil when there is no row. A row
// always has its keys.
func decodeItem(m attributes) (store.Item, error) {
	if len(m) == 0 {
		return nil, nil
	}
	row, _, err := decodeRow(m)
	if err != nil {
		return nil, err
	}
	return row.Item, nil
}

func decode(a types.AttributeValue) (store.Value, error) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return a.Value, nil
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(a.Value, 10, 64)
		if err != nil {
			return nil, errForeign
		}
		return n, nil
	case *types.AttributeValueMemberBOOL:
		return a.Value, nil
	case *types.AttributeValueMemberB:
		if a.Value == nil {
			return []byte{}, nil
		}
		return a.Value, nil
	case *types.AttributeValueMemberM:
		m := make(store.Map, len(a.Value))
		for k, e := range a.Value {
			if _, nested := e.(*types.AttributeValueMemberM); nested {
				return nil, errForeign
			}
			v, err := decode(e)
			if err != nil {
				return nil, err
			}
			m[k] = v
		}
		return m, nil
	}
	return nil, errForeign
}

// expression collects the placeholders of the expressions of one request. Every attribute
// name gets one, because many are reserved words.
type expression struct {
	names  map[string]string // "#0" -> name
	short  map[string]string // name -> "#0"
	values attributes
}

func (e *expression) name(n string) string {
	if p, ok := e.short[n]; ok {
		return p
	}
	if e.names == nil {
		e.names, e.short = make(map[string]string), make(map[string]string)
	}
	p := "#" + strconv.Itoa(len(e.names))
	e.names[p], e.short[n] = n, p
	return p
}

func (e *expression) path(p store.Path) string {
	if p.Key == "" {
		return e.name(p.Attr)
	}
	return e.name(p.Attr) + "." + e.name(p.Key)
}

func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = make(attributes)
	}
	p := ":" + strconv.Itoa(len(e.values))
	e.values[p] = v
	return p
}

// conditions are conds joined by AND; nil for none.
func (e *expression) conditions(conds []store.Cond, more ...string) *string {
	terms := make([]string, 0, len(conds)+len(more))
	for _, c := range conds {
		terms = append(terms, e.condition(c))
	}
	terms = append(terms, more...)
	if len(terms) == 0 {
		return nil
	}
	return aws.String(strings.Join(terms, " AND "))
}

func (e *expression) condition(c store.Cond) string {
	switch c.Op {
	case store.ItemAbsent:
		return "attribute_not_exists(" + e.name(attrPK) + ")"
	case store.ItemPresent:
		return "attribute_exists(" + e.name(attrPK) + ")"
	}
	p := e.path(c.Path)
	switch c.Op {
	case store.Absent:
		return "attribute_not_exists(" + p + ")"
	case store.Present:
		return "attribute_exists(" + p + ")"
	case store.Equal:
		return p + " = " + e.value(encode(c.Value))
	case store.AtLeast:
		return p + " >= " + e.value(encode(c.Value))
	}
	return p + " <= " + e.value(encode(c.Value))
}

// update is the update expression and its condition expression. DynamoDB's numbers are
// wider than int64, so a condition guards each sum: the present number must not be too far
// from zero. An absent number passes, because its comparison is false.
func (e *expression) update(u *store.Update) (change, condition *string) {
	var set, add, remove, guards []string
	for _, a := range u.Set {
		set = append(set, e.path(a.Path)+"="+e.value(encode(a.Value)))
	}
	if x := store.Epoch(u.Expires); x != 0 {
		set = append(set, e.name(attrExpires)+"="+e.value(number(x)))
	}
	zero := ""
	for _, a := range u.Add {
		p, by := e.path(a.Path), e.value(number(a.By))
		if a.Path.Key == "" {
			add = append(add, p+" "+by)
		} else { // ADD is only documented for top-level attributes
			if zero == "" {
				zero = e.value(number(0))
			}
			set = append(set, p+"=if_not_exists("+p+","+zero+")+"+by)
		}
		switch {
		case a.By > 0:
			guards = append(guards, "NOT "+p+" > "+e.value(number(math.MaxInt64-a.By)))
		case a.By < 0:
			guards = append(guards, "NOT "+p+" < "+e.value(number(math.MinInt64-a.By)))
		}
	}
	for _, p := range u.Remove {
		remove = append(remove, e.path(p))
	}
	var clauses []string
	for _, c := range []struct {
		verb  string
		terms []string
	}{{"SET ", set}, {"ADD ", add}, {"REMOVE ", remove}} {
		if len(c.terms) > 0 {
			clauses = append(clauses, c.verb+strings.Join(c.terms, ","))
		}
	}
	return aws.String(strings.Join(clauses, " ")), e.conditions(u.If, guards...)
}
