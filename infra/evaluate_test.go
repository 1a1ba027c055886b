package main

import (
	"fmt"
	"strings"
)

// world is what CloudFormation knows of an installation while a template's values
// are worked out.
type world struct {
	stackID string
	exports map[string]string // values of exports by name
	// value gives the name or the attribute of a resource; attribute is empty for
	// its name.
	value func(id, attribute string) string
}

// text works a value of a template out. It knows the functions that these
// templates use and panics at others.
func (w *world) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		for name, of := range v {
			return w.call(name, of)
		}
	}
	panic(fmt.Sprintf("no value: %v", v))
}

func (w *world) call(name string, of any) string {
	switch name {
	case "Ref":
		switch of {
		case "AWS::StackId":
			return w.stackID
		case "AWS::AccountId":
			return "123456789012"
		case "AWS::Region":
			return strings.Split(w.stackID, ":")[3]
		case "AWS::Partition":
			return "aws"
		case "AWS::URLSuffix":
			return "amazonaws.com"
		}
		return w.value(of.(string), "")
	case "Fn::GetAtt":
		return w.value(at(of, 0).(string), at(of, 1).(string))
	case "Fn::ImportValue":
		name := w.text(of)
		v, ok := w.exports[name]
		if !ok {
			panic("no export " + name)
		}
		return v
	case "Fn::Join":
		parts := []string{}
		for _, p := range at(of, 1).([]any) {
			parts = append(parts, w.text(p))
		}
		return strings.Join(parts, at(of, 0).(string))
	case "Fn::Select":
		list := w.list(at(of, 1))
		var i int
		if _, err := fmt.Sscan(fmt.Sprint(at(of, 0)), &i); err != nil || i >= len(list) {
			panic(fmt.Sprintf("no element: %v", of))
		}
		return list[i]
	}
	panic("function " + name)
}

func (w *world) list(v any) []string {
	if split := at(v, "Fn::Split"); split != nil {
		return strings.Split(w.text(at(split, 1)), at(split, 0).(string))
	}
	out := []string{}
	for _, e := range v.([]any) {
		out = append(out, w.text(e))
	}
	return out
}
