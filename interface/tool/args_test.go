package tool

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func sample() []param {
	return []param{
		{name: "d", kind: number, unit: "m", min: -.1, max: .1},
		{name: "u", kind: number, max: 1, required: true},
		{name: "n", kind: integer, min: 1, max: 50, def: 1},
		{name: "s", kind: text, enum: []string{"open", "closed"}, defText: "open"},
	}
}

func TestArgumentsAccepted(t *testing.T) {
	for _, c := range []struct {
		raw     string
		d, u, n float64
		s       string
	}{
		{`{"u":0.5}`, 0, .5, 1, "open"},
		{`{"u":"0.5"}`, 0, .5, 1, "open"},
		{` { "u" : " 0.5 " , "d":"-0.1", "n":"3", "s":"closed" } `, -.1, .5, 3, "closed"},
		{`{"u":1,"d":1e-2,"n":5e1}`, .01, 1, 50, "open"},
		{`{"u":0,"d":"+1E-2","n":2.0}`, .01, 0, 2, "open"},
		{`{"u":0,"d":null,"n":null,"s":null}`, 0, 0, 1, "open"},
		{`{"\u0075":0.25}`, 0, .25, 1, "open"},
		{`{"u":-0}`, 0, 0, 1, "open"},
		{`{"u":1e-400}`, 0, 0, 1, "open"},
	} {
		a, bad := parseArgs([]byte(c.raw), sample())
		if bad != nil {
			t.Errorf("%s: refused: %+v", c.raw, *bad)
			continue
		}
		if a.number("d") != c.d || a.number("u") != c.u || a.number("n") != c.n || a.word("s") != c.s {
			t.Errorf("%s: got %v %q", c.raw, a.num, a.str)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	for raw, want := range map[string]string{
		`{"u":"0.1m"}`:          "u",
		`{"u":"0,5"}`:           "u",
		`{"u":"NaN"}`:           "u",
		`{"u":"Inf"}`:           "u",
		`{"u":"-inf"}`:          "u",
		`{"u":"infinity"}`:      "u",
		`{"u":"0x1p-1"}`:        "u",
		`{"u":"1_0"}`:           "u",
		`{"u":""}`:              "u",
		`{"u":"1e400"}`:         "u",
		`{"u":1e400}`:           "u",
		`{"u":1.0000001}`:       "0 to 1",
		`{"u":-1e-9}`:           "0 to 1",
		`{"u":true}`:            "u",
		`{"u":[0.5]}`:           "u",
		`{"u":{"v":1}}`:         "u",
		`{"u":null}`:            "null",
		`{}`:                    "missing argument u",
		`null`:                  "missing argument u",
		``:                      "missing argument u",
		`{"u":0.5,"u":0.5}`:     "given twice",
		`{"u":0,"\u0075":0}`:    "given twice",
		`{"u":0,"w":1}`:         "unknown argument",
		`{"u":0,"U":1}`:         "unknown argument",
		`{"u":0,"n":1.5}`:       "whole number",
		`{"u":0,"n":0}`:         "1 to 50",
		`{"u":0,"n":51}`:        "1 to 50",
		`{"u":0,"s":"Open"}`:    "open, closed",
		`{"u":0,"s":""}`:        "open, closed",
		`{"u":0,"s":1}`:         "open, closed",
		`{"u":0,"d":0.1000001}`: "-0.1 to 0.1 m",
		`[1]`:                   "one JSON object",
		`"u"`:                   "one JSON object",
		`7`:                     "one JSON object",
		`{"u":0} {"u":1}`:       "one JSON object",
		`{"u":0`:                "one JSON object",
	} {
		a, bad := parseArgs([]byte(raw), sample())
		if bad == nil {
			t.Errorf("%s: accepted as %v", raw, a.num)
			continue
		}
		text := refusal(&definition{name: "tool_name"}, bad.rule, bad.value, bad.limit, bad.next).blocks[0].text
		if !strings.Contains(text, want) || !strings.Contains(text, ", got ") || !strings.Contains(text, ", limit ") {
			t.Errorf("%s: %q does not say %q", raw, text, want)
		}
	}
}

// FuzzArguments holds that whatever is sent is refused in one line of bounded length, or gives finite values
// within their ranges.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"u":0.5}`, `{"u":"0.5","d":null}`, `{"u":1e400}`, `{"u":"0.1m"}`, `{"u":0,"u":1}`, `{"\u0075":1}`, `[]`, `null`, ``, `{`,
		`{"u":0.5,"s":"\ud800"}`, "{\"u\":\"\x00\"}", `{"u":0.5,"n":"1e1"}`, `{"u":{"a":[1,2,{"b":null}]}}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ps := sample()
		a, bad := parseArgs(raw, ps)
		if bad != nil {
			text := refusal(&definition{name: "tool_name"}, bad.rule, bad.value, bad.limit, bad.next).blocks[0].text
			if strings.ContainsAny(text, "\n\r") || !utf8.ValidString(text) || len(text) > 1200 {
				t.Errorf("%q: refusal %q", raw, text)
			}
			return
		}
		for i, p := range ps {
			v := a.num[i]
			if p.kind == text {
				if !p.allows(a.str[i]) {
					t.Errorf("%q: %s = %q", raw, p.name, a.str[i])
				}
				continue
			}
			if !(v >= p.min && v <= p.max) || p.kind == integer && v != math.Trunc(v) {
				t.Errorf("%q: %s = %v", raw, p.name, v)
			}
		}
	})
}

func TestQuoteOdd(t *testing.T) {
	for in, want := range map[string]string{
		`{"u":1e400}`:                            `{"u":"1e400"}`,
		`{"u":NaN,"v":-Infinity,"w":Infinity}`:   `{"u":"NaN","v":"-Infinity","w":"Infinity"}`,
		`{"NaN":"Infinity","u":null,"v":-5}`:     `{"NaN":"Infinity","u":null,"v":-5}`,
		`{"u":-1E+999,"v":0.5}`:                  `{"u":"-1E+999","v":0.5}`,
		`[1e400,1e400]`:                          `["1e400","1e400"]`,
		`{"u":"1e400","v":"a\"1e400"}`:           `{"u":"1e400","v":"a\"1e400"}`,
		`{"u":1e300,"id":12345678901234}`:        `{"u":1e300,"id":12345678901234}`,
		`{"u":1e-400}`:                           `{"u":1e-400}`,
		`"unterminated 1e400`:                    `"unterminated 1e400`,
		`"\`:                                     `"\`,
		`{"u":` + strings.Repeat("9", 400) + `}`: `{"u":"` + strings.Repeat("9", 400) + `"}`,
	} {
		if got := string(quoteOdd([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestNumbersPrintPlainly(t *testing.T) {
	for _, c := range []struct {
		v    float64
		d    int
		want string
	}{
		{0, 4, "0.0000"},
		{math.Copysign(0, -1), 4, "0.0000"},
		{-1e-9, 4, "0.0000"},
		{-0.00004, 4, "0.0000"},
		{-0.00006, 4, "-0.0001"},
		{1e-12, 2, "0.00"},
		{123456789, 2, "123456789.00"},
		{-3.14159, 4, "-3.1416"},
		{math.NaN(), 4, "unknown"},
		{math.Inf(-1), 2, "unknown"},
	} {
		if got := fixed(c.v, c.d); got != c.want {
			t.Errorf("fixed(%v, %d) = %s, want %s", c.v, c.d, got, c.want)
		}
	}
	r := resultJSON{Offset: &vecJSON{meters(math.Copysign(0, -1)), meters(math.NaN()), 1e-7}}
	got, err := r.text()
	if want := `{"offset_m":{"x":0.0000,"y":null,"z":0.0000}}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
