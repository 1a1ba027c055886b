package routes

import (
	"net/http"
	"strings"
)

// nativePath is the path of a native route: the model is between both ends.
type nativePath struct {
	before, behind string
	route          *Route
}

// nameNative prepares the native routes of the route of AnyPath.
func (rt *Route) nameNative() {
	for i := range rt.Native {
		own := &rt.Native[i]
		own.passed = rt
		before, behind, _ := strings.Cut(own.Path, "{model+}")
		own.InPath = before != own.Path
		rt.native = append(rt.native, nativePath{before, behind, own})
	}
}

// nativeAt returns the native route of a path below BasePath, and the model in it.
func (rt *Route) nativeAt(method, below string) (own *Route, model string) {
	if method != http.MethodPost {
		return nil, ""
	}
	for i := range rt.native {
		n := &rt.native[i]
		switch rest, ok := strings.CutPrefix(below, n.before); {
		case !ok:
		case !n.route.InPath:
			if rest == "" {
				return n.route, ""
			}
		default:
			if model, ok := strings.CutSuffix(rest, n.behind); ok && model != "" {
				return n.route, model
			}
		}
	}
	return nil, ""
}

// Passed returns the route by which a request of a native route is forwarded unchanged; nil for
// other routes.
func (rt *Route) Passed() *Route { return rt.passed }
