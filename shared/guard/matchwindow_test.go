package guard

import (
	"strings"
	"testing"
)

func TestReachOfPatterns(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]MatchWindow{
		`hunter2`:                             {Most: 7},
		`\d{3}-\d{2}`:                         {Most: 6},
		`\d+`:                                 {Most: 1},
		`x*y+z?`:                              {Most: 1},
		`x+y`:                                 {Most: 2},
		`secret|pass\s?word`:                  {Most: 9},
		`.*secret.*`:                          {Most: 6},
		`\bclass\b`:                           {Most: 5, WholeWords: true},
		`\S+@\S+\.\w+`:                        {WholeWords: true},
		`[a-z.]+@[a-z]+\.[a-z]{2,}`:           {WholeWords: true},
		`top\s+secret`:                        {Complete: true},
		`BEGIN[\s\S]*END`:                     {Complete: true},
		`user \w+ secret`:                     {Complete: true},
		`^Hello`:                              {Complete: true},
		`bye$`:                                {Complete: true},
		`(?=x)y`:                              {Complete: true},
		`(a)\1`:                               {Complete: true},
		`[`:                                   {Complete: true},
		strings.Repeat("a", MaxMatchWindow+1): {Complete: true},
		strings.Repeat("(?:ab){9}", 100):      {Most: 1800},
		`(?:` + strings.Repeat("a", 60) + `b){1,1000}c?`: {Most: 61},
	} {
		if got := PatternWindow(pattern, false); got != want {
			t.Errorf("%.40s: %+v, want %+v", pattern, got, want)
		}
	}
	if got := PatternWindow(`/hunter\d+/gi`, true); got != (MatchWindow{Most: 7}) {
		t.Errorf("%+v", got)
	}
	if got := WordsWindow([]string{"a", "größe"}); got != (MatchWindow{Most: 5}) {
		t.Errorf("%+v", got)
	}
}
