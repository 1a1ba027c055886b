package dynamo

import (
	"errors"
	"fmt"
	"strconv"

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

var errForeign = errors.New("store: dynamodb: a row holds what this store does not write")

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
