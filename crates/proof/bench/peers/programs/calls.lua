-- Calls for wrk: each with a text of its own, each answer compared with what was asked.
--
-- One thread makes them all, so an answer is right when it brings back a text that is under way;
-- it is taken off then, so that no text can come back twice.

local body = os.getenv("CALL_BODY")
local before = os.getenv("CALL_BEFORE")
local token = os.getenv("CALL_TOKEN")

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init()
  wrk.method = "POST"
  wrk.headers["content-type"] = "application/json"
  if token ~= "" then wrk.headers["authorization"] = "Bearer " .. token end
  -- Two runs on the same server must not meet each other's texts.
  run = string.format("%x", os.time() % 65536) .. string.format("%x", math.random(1, 65535))
  made, wrong, failed, right = 0, 0, 0, 0
  why = ""
  under_way = {}
  head, rest = body:match("^(.-)@@(.*)$")
end

math.randomseed(os.time())

function request()
  made = made + 1
  local text = "t" .. run .. "x" .. made
  under_way[text] = true
  return wrk.format(nil, nil, nil, head .. text .. rest)
end

function response(status, _, answer)
  if status ~= 200 then
    failed = failed + 1
    if why == "" then why = status .. " " .. answer:sub(1, 120) end
    return
  end
  local _, last = answer:find(before, 1, true)
  local text = last and answer:match("^%w+", last + 1)
  if text and under_way[text] then
    under_way[text] = nil
    right = right + 1
  else
    wrong = wrong + 1
    if why == "" then why = answer:sub(1, 200) end
  end
end

function done(summary, latency, _)
  local right, wrong, failed, why = 0, 0, 0, ""
  for _, thread in ipairs(threads) do
    right = right + thread:get("right")
    wrong = wrong + thread:get("wrong")
    failed = failed + thread:get("failed")
    if thread:get("why") ~= "" then why = thread:get("why") end
  end
  local errors = summary.errors
  failed = failed + errors.connect + errors.read + errors.write + errors.timeout
  why = why:gsub("[%c\"\\]", " ")
  io.write(string.format(
    '\n{"calls": %d, "wrong": %d, "failed": %d, "per_second": %.3f, "p50_ms": %.5f, "p99_ms": %.5f, "why": "%s"}\n',
    right, wrong, failed, right / (summary.duration / 1e6),
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, why))
end
