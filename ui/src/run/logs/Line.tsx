/* Line.tsx: one line of a log: when, how grave, by which step in which iteration and attempt, and what. */
import { writeJson } from "../../api/json";
import type { LogLine } from "../../api/types";
import { ansiPieces, ansiText } from "../../parts/ansi";
import { formatAbsolute, formatClock } from "../../parts/time";
import { count } from "../nodes/names";
import type { RunPlan } from "../nodes/shared";
import { wayTo } from "../plan";
import "./logs.css";

const hasMetadata = (line: LogLine) => line.metadata !== undefined && line.metadata !== null;

/** `loops`: so many can be inside each other in this run; 0: there is no column for iterations. */
export function Line({ line, plan, level, loops }: { line: LogLine; plan: RunPlan; level: string; loops: number }) {
  const iterations = wayTo(plan.boxes, line.path)
    .flatMap(({ iteration }) => (iteration === undefined ? [] : [`#${count(iteration + 1)}`]))
    .join(" › ");
  return (
    <div className={`log-line level-${level}${line.kind === "stream" ? " log-stream" : ""}`}>
      <LineTime line={line} />
      <span className="log-level">{line.level}</span>
      <span className="log-step" title={line.path + (line.attempt > 1 ? `, attempt ${line.attempt}` : "")}>
        {line.stepName}
        {line.attempt > 1 && <span className="muted">, attempt {line.attempt}</span>}
      </span>
      {loops > 0 && (
        <span className="log-iteration muted" title={iterations}>
          {iterations}
        </span>
      )}
      <Message line={line} />
    </div>
  );
}

export function LineTime({ line }: { line: LogLine }) {
  return (
    <time className="muted" dateTime={new Date(line.timestamp).toISOString()} title={formatAbsolute(line.timestamp)}>
      {formatClock(line.timestamp)}
    </time>
  );
}

export function Message({ line }: { line: LogLine }) {
  return (
    <span className="log-message">
      {ansiPieces(line.message).map((piece, i) =>
        piece.looks.length === 0 ? (
          piece.text
        ) : (
          <span key={i} className={piece.looks.map((look) => `ansi-${look}`).join(" ")}>
            {piece.text}
          </span>
        ),
      )}
      {hasMetadata(line) && <code className="log-meta">{writeJson(line.metadata!)}</code>}
    </span>
  );
}

/** As it is saved. */
export function lineText(line: LogLine): string {
  const attempt = line.attempt > 1 ? ` (attempt ${line.attempt})` : "";
  const more = hasMetadata(line) ? ` ${writeJson(line.metadata!)}` : "";
  return `${new Date(line.timestamp).toISOString()} ${line.level.padEnd(5)} ${line.path}${attempt}: ${ansiText(line.message)}${more}\n`;
}
