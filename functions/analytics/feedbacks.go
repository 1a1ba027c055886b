package analytics

import (
	"reflect"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

// feedbackGraphs returns the routes of graphs of client feedback.
func (f *family) feedbackGraphs(query []admin.Field) (routes []admin.Route) {
	for _, name := range report.FeedbackGraphs() {
		r := f.graph(name, query)
		r.AnswerOf = func() admin.Schema { return shapeOf(report.FeedbackGraphTypes(name)) }
		r.Do = func(c *admin.Call) (any, error) {
			return f.draw(c, func(sc store.Scope, filter *report.Filter) (report.Graph, error) {
				marks, err := f.marks(c, sc, filter, name == "feedbacks/ai-models")
				if err != nil {
					return report.Graph{}, err
				}
				return report.FeedbackGraph(name, filter, marks), nil
			})
		}
		routes = append(routes, r)
	}
	return routes
}

// marks is the feedback that was given in the time of the question. Where the question
// filters by more than time and workspace, a feedback counts if its trace has a request of
// that time which passes the filter; models are those of such requests.
func (f *family) marks(c *admin.Call, sc store.Scope, filter *report.Filter, models bool) (marks []report.Feedback, err error) {
	scopes, err := usagequery.Workspaces(c, sc)
	if err != nil {
		return nil, err
	}
	join := models || !timeAlone(filter)
	var traces []string
	wanted := map[string]struct{}{}
	over := false
	for _, in := range scopes {
		from, err := f.reader.RetainedSince(c.Context, in, filter.From)
		if err != nil {
			return nil, usagequery.Failed(err)
		}
		err = f.feedback.Between(c.Context, in, from, filter.To.Add(time.Millisecond), func(r *feedback.Feedback) bool {
			if over = len(marks) == usagequery.MaxFeedback; over {
				return false
			}
			marks = append(marks, report.Feedback{At: r.Created, Value: r.Value, Weighted: r.Weighted()})
			if join {
				traces, wanted[r.Trace] = append(traces, r.Trace), struct{}{}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if over {
			return nil, fault.Invalid("time_of_generation_max", "is so far from time_of_generation_min that there are more than %d feedbacks; narrow the time", usagequery.MaxFeedback)
		}
	}
	if !join {
		return marks, nil
	}
	of, err := f.reader.Models(c.Context, sc, filter, wanted)
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	passed := marks[:0]
	for i, trace := range traces {
		if model, ok := of[trace]; ok {
			marks[i].Model = model
			passed = append(passed, marks[i])
		}
	}
	return passed, nil
}

// timeAlone reports whether a filter restricts only the time.
func timeAlone(f *report.Filter) bool {
	rest := *f
	rest.From, rest.To = report.Filter{}.From, report.Filter{}.To
	v := reflect.ValueOf(rest)
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() && (field.Kind() != reflect.Slice && field.Kind() != reflect.Map || field.Len() > 0) {
			return false
		}
	}
	return true
}
