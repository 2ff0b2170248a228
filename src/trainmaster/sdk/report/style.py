"""The style of a report: light or dark as the reader's system, and for paper. Pure."""

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2430;--quiet:#5b6472;--line:#d9dde4;--soft:#f4f5f8;
--good:#1a7f37;--bad:#c0232c;--warn:#8a5a00;--busy:#0b5fc0;--wait:#5b6472;
--c0:#0b6fc0;--c1:#c2570c;--c2:#0d8a64;--c3:#ad3f86;--c4:#7d6127;--c5:#5562c9;--c6:#a92f2f;--c7:#4a7677}
@media (prefers-color-scheme:dark){:root{--paper:#14171d;--ink:#e4e7ec;--quiet:#a0a8b5;--line:#343a46;--soft:#1c2028;
--good:#4cc26b;--bad:#ff7b72;--warn:#e0a83a;--busy:#6cb0ff;--wait:#a0a8b5;
--c0:#58aefb;--c1:#f0944d;--c2:#3fc79a;--c3:#e584c1;--c4:#cdb06c;--c5:#9aa4ff;--c6:#f08080;--c7:#86bcbd}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:24px 20px 48px;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:22px;line-height:1.3;margin:0;overflow-wrap:anywhere}
h2{font-size:16px;margin:32px 0 10px;padding-bottom:4px;border-bottom:1px solid var(--line)}
p{margin:6px 0}
a{color:var(--busy)}
.quiet{color:var(--quiet)}
.head{display:flex;flex-wrap:wrap;gap:6px 14px;align-items:center}
.state{font-weight:600;border:1.5px solid currentColor;border-radius:999px;padding:1px 12px}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}.busy{color:var(--busy)}.wait{color:var(--wait)}
.reason{margin:14px 0 0;padding:10px 14px;background:var(--soft);border-left:4px solid var(--line);
overflow-wrap:anywhere}
.reason.bad{border-color:var(--bad);color:inherit}.reason.warn{border-color:var(--warn);color:inherit}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;vertical-align:top;padding:4px 16px 4px 0;border-bottom:1px solid var(--line);
overflow-wrap:anywhere}
th{font-weight:500;color:var(--quiet)}
tbody th{width:11em;white-space:nowrap}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.number:last-child,th.number:last-child{padding-right:0}
.wide{overflow-x:auto}
pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12.5px}
pre{margin:6px 0;padding:10px 12px;background:var(--soft);border:1px solid var(--line);border-radius:6px;
white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.45}
.end{display:flex;flex-direction:column-reverse;max-height:30em;overflow:auto;margin:6px 0;
border:1px solid var(--line);border-radius:6px}.end pre{flex:none;margin:0;border:0;border-radius:0}
.note{white-space:pre-wrap;overflow-wrap:anywhere}
.charts+.wide{margin-top:14px}
details{margin:8px 0}summary{cursor:pointer;font-weight:500}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:14px}
figure{margin:0;padding:10px 12px;border:1px solid var(--line);border-radius:8px;min-width:0;break-inside:avoid}
figcaption{font-weight:500;overflow-wrap:anywhere}
figure .quiet{font-size:13px}
figure svg,figure img{display:block;width:100%;height:auto;margin-top:4px}
figure img{background:#fff}
svg text{fill:var(--quiet);font-size:11px;font-family:inherit}
.grid{stroke:var(--line);stroke-width:1;fill:none}.axis{stroke:var(--quiet);stroke-width:1;fill:none}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}
.line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}.line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}
.line.more{stroke:var(--quiet);opacity:.5}
.dot.c0{fill:var(--c0)}.dot.c1{fill:var(--c1)}.dot.c2{fill:var(--c2)}.dot.c3{fill:var(--c3)}
.dot.c4{fill:var(--c4)}.dot.c5{fill:var(--c5)}.dot.c6{fill:var(--c6)}.dot.c7{fill:var(--c7)}
.dot.more{fill:var(--quiet);opacity:.5}
.key{display:inline-block;font-size:12.5px;margin-right:10px}
.key.c0{color:var(--c0)}.key.c1{color:var(--c1)}.key.c2{color:var(--c2)}.key.c3{color:var(--c3)}
.key.c4{color:var(--c4)}.key.c5{color:var(--c5)}.key.c6{color:var(--c6)}.key.c7{color:var(--c7)}
.sweep{margin:12px 0}.sweep img{background:#fff;border-radius:6px}
footer{margin-top:40px;color:var(--quiet);font-size:13px}
@media (max-width:560px){tbody th{width:7em;white-space:normal}}
th{overflow-wrap:normal}
@media print{:root{--paper:#fff;--ink:#000;--quiet:#444;--line:#bbb;--soft:#f6f6f6}
body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}tr{break-inside:avoid}
.charts{grid-template-columns:1fr 1fr}.end{max-height:none;display:block}}
"""
