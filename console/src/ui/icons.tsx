// Small drawings of our own, 16 by 16, in the colour of the text around them.
import type { ComponentChildren } from "preact";

const SHAPES: Record<string, ComponentChildren> = {
  home: <path d="M2.5 7.2 8 2.8l5.5 4.4v5.6a.7.7 0 0 1-.7.7H9.8v-3.8H6.2v3.8h-3a.7.7 0 0 1-.7-.7z" />,
  runs: <path d="M2.5 4h7M2.5 8h11M6.5 12h7" />,
  inbox: <path d="M2.5 9.2 4.4 3.4h7.2l1.9 5.8v3a.9.9 0 0 1-.9.9H3.4a.9.9 0 0 1-.9-.9zm0 0h3.2l.8 1.7h3l.8-1.7h3.2" />,
  tool: <path d="M9.7 5.2a2.9 2.9 0 0 0 3.8 3.2 3 3 0 0 1-3.9 1.4L6 13.4a1.5 1.5 0 0 1-2.2 0 1.5 1.5 0 0 1 0-2.2l3.6-3.6a3 3 0 0 1 1.4-3.9 2.9 2.9 0 0 0 .9 1.5z" />,
  provider: <path d="M3 3h10v4H3zM3 9h10v4H3zM5.3 5h.1M5.3 11h.1" />,
  world: <path d="M8 2.3a5.7 5.7 0 1 0 0 11.4A5.7 5.7 0 0 0 8 2.3zM2.5 8h11M8 2.3c-3.3 3.4-3.3 8 0 11.4 3.3-3.4 3.3-8 0-11.4z" />,
  money: <path d="M8 2.3v11.4M10.9 4.9C10.3 4 9.2 3.7 8 3.7c-1.600 0-2.900.8-2.900 2.100 0 3 6 1.300 6 4.300 0 1.400-1.400 2.200-3.100 2.200-1.400 0-2.600-.5-3.200-1.500" />,
  seat: <path d="M8 8.2a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400zM3 13.400c.4-2.200 2.400-3.500 5-3.500s4.600 1.300 5 3.500" />,
  audit: <path d="M4 2.500h5.500L12.500 5.500v8H4zM9.300 2.500v3.200h3.200M6 8.300h4.500M6 10.800h4.500" />,
  key: <path d="M6 9.600a2.900 2.900 0 1 1 2.700-4l5 .1v2.400h-1.600v1.700H10l-.4-1.500h-.9A2.900 2.900 0 0 1 6 9.600zM5.600 6.700h.1" />,
  system: <path d="M2.500 9.500h2.700l1.600-5 2.500 7.500 1.600-4h2.600" />,
  flow: <path d="M2.500 3h4v3.200h-4zM9.500 9.800h4V13h-4zM9.500 3h4v3.200h-4zM6.500 4.600h3M8 4.600v6.800h1.500" />,
  hook: <path d="M9.800 2.800v6.900a3.100 3.100 0 1 1-6.200 0V8.200M3.600 8.200 2.300 9.700M3.600 8.200l1.500 1.500M9.800 2.800H8.200M9.800 2.800h1.600" />,
  search: <path d="M7.200 11.700a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.500 10.500l3 3" />,
  check: <path d="m3.500 8.500 3 3 6-7" />,
  x: <path d="m4 4 8 8M12 4l-8 8" />,
  right: <path d="m6 3.500 4.500 4.500L6 12.500" />,
  down: <path d="m3.500 6 4.500 4.500L12.500 6" />,
  left: <path d="M10 3.500 5.500 8l4.500 4.500" />,
  copy: <path d="M6 6V3.300h6.700V10H10M3.300 6H10v6.700H3.300z" />,
  play: <path d="m5 3.200 7.500 4.800L5 12.800z" />,
  stop: <path d="M4 4h8v8H4z" />,
  again: <path d="M12.800 8a4.800 4.800 0 1 1-1.400-3.400M12.800 2.800v2.700h-2.700" />,
  warn: <path d="M8 2.800 14 13H2zM8 6.700v3M8 11.400v.1" />,
  info: <path d="M8 13.700a5.700 5.700 0 1 0 0-11.400 5.700 5.700 0 0 0 0 11.400zM8 7.400v3.400M8 5.200v.1" />,
  clock: <path d="M8 13.700a5.700 5.700 0 1 0 0-11.400 5.700 5.700 0 0 0 0 11.400zM8 5v3.200l2 1.300" />,
  pause: <path d="M5.500 4v8M10.500 4v8" />,
  file: <path d="M4 2.500h5.500l2.700 2.700v8.300H4zM9.300 2.500v3h2.900" />,
  folder: <path d="M2.500 4.300a.8.8 0 0 1 .8-.8h3l1.400 1.600h5a.8.8 0 0 1 .8.8v5.800a.8.8 0 0 1-.8.800H3.300a.8.8 0 0 1-.8-.8z" />,
  up: <path d="M8 13V3.500M4 7.300l4-3.900 4 3.900" />,
  download: <path d="M8 2.800V10M4.700 7 8 10.200 11.300 7M3 13.200h10" />,
  trash: <path d="M3 4.500h10M6.300 4.500v-1.700h3.400v1.700M4.300 4.500l.6 8.700h6.200l.6-8.700M6.800 7v3.800M9.200 7v3.800" />,
  plus: <path d="M8 3.200v9.600M3.200 8h9.600" />,
  menu: <path d="M2.500 4.500h11M2.500 8h11M2.500 11.500h11" />,
  more: <path d="M3.800 8h.1M8 8h.1M12.200 8h.1" />,
  sun: <path d="M8 10.700a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400zM8 1.800v1.300M8 12.900v1.300M1.800 8h1.300M12.900 8h1.300M3.600 3.600l.9.900M11.500 11.500l.9.900M3.600 12.400l.9-.9M11.500 4.500l.9-.9" />,
  moon: <path d="M13 9.300A5.400 5.400 0 0 1 6.700 3a5.400 5.400 0 1 0 6.300 6.300z" />,
  bell: <path d="M4 11V7.300a4 4 0 0 1 8 0V11l1.200 1.300H2.800zM6.700 13.500h2.600" />,
  out: <path d="M9.500 3H3.500v10h6M7 8h6.500M11 5.500 13.500 8 11 10.500" />,
  shield: <path d="M8 2.300 13 4v4c0 3-2.100 5-5 5.900C5.100 13 3 11 3 8V4z" />,
  question: <path d="M6 6.200c0-1.300.9-2.100 2.100-2.100s2 .8 2 1.900c0 1.600-2.100 1.700-2.100 3.400M8 11.800v.1" />,
  link: <path d="M6.800 9.200a2.500 2.500 0 0 0 3.600 0l2-2a2.500 2.500 0 0 0-3.600-3.600l-.7.7M9.200 6.800a2.500 2.500 0 0 0-3.600 0l-2 2a2.500 2.500 0 0 0 3.600 3.600l.7-.7" />,
  sort: <path d="M5 3.500v9M2.700 10.200 5 12.500l2.300-2.300M9 4.500h4.500M9 8h3.200M9 11.500h2" />,
};

export type IconName = keyof typeof SHAPES & string;

export function Icon({ name, size = 16, className }: { name: IconName; size?: number; className?: string }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" class={className}>
      {SHAPES[name]}
    </svg>
  );
}

/** The mark of the product: a pier over water. */
export function Logo({ size = 20 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b6672" />
      <g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round">
        <path d="M6 11h20M10 11v9M16 11v9M22 11v9M6 24c2 0 2-1.600 4-1.600s2 1.600 4 1.600 2-1.600 4-1.600 2 1.600 4 1.600 2-1.600 4-1.600" />
      </g>
    </svg>
  );
}
