package dynamo

import (
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store"
)

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
